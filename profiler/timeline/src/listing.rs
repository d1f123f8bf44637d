//! The names of segments: `rank0-000001.dft`, ….

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// A segment's file. Ordered by rank, then number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listed {
    pub rank: u32,
    pub number: u32,
    pub path: PathBuf,
}

/// The segments in a directory, in order; none if there is no such directory.
pub(crate) fn segments(directory: &Path) -> Result<Vec<Listed>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(directory, "list it")(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io(directory, "list it"))?.path();
        let numbers = path.file_name().and_then(|name| numbers(name.to_str()?));
        found.extend(numbers.map(|(rank, number)| Listed { rank, number, path }));
    }
    found.sort();
    Ok(found)
}

/// When something was last written into each rank's segments, by rank.
pub(crate) fn written_at(directory: &Path) -> Result<BTreeMap<u32, SystemTime>> {
    let mut ranks = BTreeMap::new();
    for Listed { rank, path, .. } in segments(directory)? {
        // One that `keep` has deleted meanwhile is not the newest.
        let Ok(written) = fs::metadata(&path).and_then(|found| found.modified()) else { continue };
        let newest = ranks.entry(rank).or_insert(written);
        *newest = written.max(*newest);
    }
    Ok(ranks)
}

/// Where a segment lies.
pub(crate) fn path(directory: &Path, rank: u32, number: u32) -> PathBuf {
    directory.join(format!("rank{rank}-{number:06}.dft"))
}

/// `rank0-000001.dft` as (0, 1).
fn numbers(name: &str) -> Option<(u32, u32)> {
    let (rank, number) = name.strip_prefix("rank")?.strip_suffix(".dft")?.split_once('-')?;
    Some((rank.parse().ok()?, number.parse().ok()?))
}
