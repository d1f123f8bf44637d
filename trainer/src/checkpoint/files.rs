//! Directories that appear whole or not at all: written beside, brought to the disk, renamed.

use super::CheckpointError;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Ending of what is being written.
const PART: &str = "part";
/// Ending of what is being replaced.
const OLD: &str = "old";

/// Fills a directory beside `dir`, brings it to the disk, and gives it its name. What stood there before stays until
/// then, and comes back if anything fails.
///
/// # Errors
/// The disk refuses; nothing of the new directory is left then.
pub fn write_directory(
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    let part = dir.with_extension(PART);
    let written = begin(&part).and_then(|()| fill(&part)).and_then(|()| sync_all(&part)).and_then(|()| put(&part, dir));
    if written.is_err() {
        // It is of no use to anyone, and takes room that may be what was missing.
        let _ = fs::remove_dir_all(&part);
    }
    written
}

fn begin(part: &Path) -> Result<(), CheckpointError> {
    if part.exists() {
        fs::remove_dir_all(part).map_err(CheckpointError::io("remove", part))?;
    }
    fs::create_dir_all(part).map_err(CheckpointError::io("create", part))
}

/// Brings a directory with all that is in it to the disk.
fn sync_all(dir: &Path) -> Result<(), CheckpointError> {
    for entry in fs::read_dir(dir).map_err(CheckpointError::io("read", dir))? {
        let path = entry.map_err(CheckpointError::io("read", dir))?.path();
        if path.is_dir() {
            sync_all(&path)?;
        } else {
            sync(&path)?;
        }
    }
    sync(dir)
}

fn sync(path: &Path) -> Result<(), CheckpointError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(CheckpointError::io("write", path))
}

/// Renames, with what stood there set aside first: the system does not replace a directory that has entries.
fn put(part: &Path, dir: &Path) -> Result<(), CheckpointError> {
    let old = dir.with_extension(OLD);
    let replaces = dir.exists() && fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_some());
    if replaces {
        fs::rename(dir, &old).map_err(CheckpointError::io("set aside", dir))?;
    }
    let named = fs::rename(part, dir).map_err(CheckpointError::io("write", dir));
    if named.is_err() && replaces {
        let _ = fs::rename(&old, dir);
    }
    named?;
    if replaces {
        let _ = fs::remove_dir_all(&old);
    }
    match dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync(parent),
        None => Ok(()),
    }
}

/// Clears up after a process that died while it wrote: parts go, and what was set aside comes back.
///
/// # Errors
/// The directory cannot be read.
pub fn recover(checkpoints: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(checkpoints) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    for path in paths {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(PART) => fs::remove_dir_all(&path)?,
            Some(OLD) if path.with_extension("").exists() => fs::remove_dir_all(&path)?,
            Some(OLD) => fs::rename(&path, path.with_extension(""))?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &'static str) -> impl FnOnce(&Path) -> Result<(), CheckpointError> {
        move |part| fs::write(part.join("file"), text).map_err(CheckpointError::io("write", part))
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("step-000001");
        write_directory(&dir, fill("first")).unwrap();
        let full = |part: &Path| {
            fs::write(part.join("file"), "half").unwrap();
            Err(CheckpointError::io("write", part)(io::ErrorKind::StorageFull.into()))
        };
        let error = write_directory(&dir, full).unwrap_err();
        assert!(error.while_writing() && error.to_string().contains("cannot write"), "{error}");
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "first");
        write_directory(&dir, fill("second")).unwrap();
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "second");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_a_dead_process_left_is_cleared_up() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["step-000001.part", "step-000002.old", "step-000003", "step-000003.old"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("file"), name).unwrap();
        }
        recover(place.path()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["step-000002", "step-000003"]);
        assert_eq!(fs::read_to_string(path("step-000003").join("file")).unwrap(), "step-000003");
        recover(&path("not there")).unwrap();
    }
}
