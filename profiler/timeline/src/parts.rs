//! The parts of iterations.csv: what has been put away of a long run.
//!
//! A file that is large enough is renamed to `iterations-000001.csv`, …, and packed in the background into
//! `iterations-000001.csv.zst`, which is written beside, renamed, and only then replaces the plain part. Whenever that is
//! cut short, each part is there as one file or the other, or as both; readers take the packed one then.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The parts of a file, by number; each once.
pub(crate) fn list(live: &Path) -> Result<BTreeMap<u32, PathBuf>> {
    let directory = live.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(Error::io(directory, "list it")(e)),
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(Error::io(directory, "list it"))?.path();
        let Some((number, packed)) = numbered(live, &path) else { continue };
        if packed || !found.contains_key(&number) {
            found.insert(number, path);
        }
    }
    Ok(found)
}

/// The plain parts, also those that are packed, too: what packing has left to do. What it left half done is removed.
pub(crate) fn left_over(live: &Path) -> Result<Vec<PathBuf>> {
    let numbers = list(live)?.into_keys();
    let plain: Vec<PathBuf> = numbers.map(|number| plain(live, number)).collect();
    for beside in plain.iter().map(|part| beside(part)).filter(|beside| beside.exists()) {
        // Unless it is being written now. If it cannot be removed it is written over.
        if let Ok(Some(_claimed)) = claim(&beside) {
            let _ = fs::remove_file(&beside);
        }
    }
    Ok(plain.into_iter().filter(|part| part.exists()).collect())
}

/// The plain file of a part.
pub(crate) fn plain(live: &Path, number: u32) -> PathBuf {
    let (stem, extension) = names(live);
    live.with_file_name(format!("{stem}-{number:06}.{extension}"))
}

/// The packed file of a plain part.
pub(crate) fn packed(plain: &Path) -> PathBuf {
    let mut name = plain.as_os_str().to_owned();
    name.push(".zst");
    name.into()
}

/// Where the packed file of a plain part is written.
pub(crate) fn beside(plain: &Path) -> PathBuf {
    packed(plain).with_extension("zst.part")
}

/// The file beside a part, locked for as long as it is open; `None` if another packer holds it, or has just put it in place.
pub(crate) fn claim(beside: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).write(true).truncate(false).open(beside)?;
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    let (ours, there) = (file.metadata()?, fs::metadata(beside));
    let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
    Ok(same.then_some(file))
}

/// The parts that a reader takes, in order, and the live file, opened. The live file is the one that follows these parts,
/// whatever is put away meanwhile.
pub(crate) fn open(live: &Path) -> Result<(Vec<PathBuf>, Option<File>)> {
    let opened = || match File::open(live) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(live, "read it")(e)),
    };
    let same = |a: &Option<File>, b: &Option<File>| {
        let inode = |file: &Option<File>| file.as_ref().and_then(|f| f.metadata().ok()).map(|m| (m.dev(), m.ino()));
        inode(a) == inode(b)
    };
    loop {
        let before = opened()?;
        let parts = list(live)?;
        if same(&before, &opened()?) {
            return Ok((parts.into_values().collect(), before));
        }
    }
}

/// `iterations-000001.csv` as (1, false), with `.zst` behind it as (1, true).
fn numbered(live: &Path, path: &Path) -> Option<(u32, bool)> {
    let (stem, extension) = names(live);
    let name = path.file_name()?.to_str()?.strip_prefix(&stem)?.strip_prefix('-')?;
    let (name, packed) = name.strip_suffix(".zst").map_or((name, false), |name| (name, true));
    let number = name.strip_suffix(&extension)?.strip_suffix('.')?;
    Some((number.parse().ok()?, packed))
}

fn names(live: &Path) -> (String, String) {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map_or_else(String::new, |part| part.to_string_lossy().into_owned());
    (text(live.file_stem()), text(live.extension()))
}
