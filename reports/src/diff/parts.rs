//! Where the rows of iterations.csv lie: a file, or the parts of a run's.
//!
//! A long run's earlier rows stand in `iterations-000001.csv.zst` and so on (or `.csv`, while one is being compressed),
//! the newest in iterations.csv, each with the same header.

use crate::error::{Error, Result};
use dflash_timeline::RunDir;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// One file to read rows from.
pub(super) struct Part {
    pub path: PathBuf,
    /// Bytes that are read; a run may append meanwhile, and what it adds is for the next reading.
    pub length: u64,
    /// Whether the last line lacks its newline.
    pub torn: bool,
    pub bytes: Box<dyn Read>,
}

impl Part {
    /// Opens a file, as long as it is now.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        if path.extension().is_some_and(|extension| extension == "zst") {
            let bytes: Box<dyn Read> = Box::new(zstd::Decoder::new(file).map_err(io)?);
            return Ok(Self { path: path.to_owned(), length: u64::MAX, torn: false, bytes });
        }
        let length = file.seek(SeekFrom::End(0)).map_err(io)?;
        let mut last = *b"\n";
        if length > 0 {
            file.seek(SeekFrom::Start(length - 1)).map_err(io)?;
            file.read_exact(&mut last).map_err(io)?;
            file.seek(SeekFrom::Start(0)).map_err(io)?;
        }
        let bytes = Box::new(file.take(length));
        Ok(Self { path: path.to_owned(), length, torn: last != *b"\n", bytes })
    }
}

/// The files that hold a run's iterations, oldest first.
pub(super) fn of_run(run: &RunDir) -> Result<Vec<PathBuf>> {
    let io = |source| Error::Io { path: run.path().to_owned(), source };
    let mut parts: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for entry in fs::read_dir(run.path()).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let Some(number) = path.file_name().and_then(|name| number(name.to_str()?)) else { continue };
        // Of a part and its compressed form, the plain one is whole.
        let plain = path.extension().is_some_and(|extension| extension == "csv");
        if plain || !parts.contains_key(&number) {
            parts.insert(number, path);
        }
    }
    let newest = run.iterations_csv();
    let newest = (newest.exists() || parts.is_empty()).then_some(newest);
    Ok(parts.into_values().chain(newest).collect())
}

/// `iterations-000001.csv.zst` as 1.
fn number(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("iterations-")?;
    rest.strip_suffix(".csv.zst").or_else(|| rest.strip_suffix(".csv"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn parts_are_known_by_their_names() {
        assert_eq!(number("iterations-000012.csv.zst"), Some(12));
        assert_eq!(number("iterations-3.csv"), Some(3));
        for other in ["iterations.csv", "iterations-x.csv", "iterations-1.csv.zst.tmp", "metrics-1.csv"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
