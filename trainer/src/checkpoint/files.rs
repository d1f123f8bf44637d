//! Directories that appear whole or not at all: written beside, brought to the disk, renamed.

use super::CheckpointError;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Ending of what is being written.
const PART: &str = "part";
/// Ending of what is being replaced.
const OLD: &str = "old";
/// So many leavings of dead processes may lie beside a directory.
const MOST_LEFT: usize = 100;

/// Fills a directory beside `dir`, brings it to the disk, and gives it its name. What stood there before stays until
/// then, and comes back if anything fails.
///
/// # Errors
/// The disk refuses; nothing of the new directory is left then.
pub fn write_directory(
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    let part = begin(dir)?;
    let written = fill(&part).and_then(|()| sync_all(&part)).and_then(|()| put(&part, dir));
    if written.is_err() {
        // It is of no use to anyone, and takes room that may be what was missing.
        let _ = fs::remove_dir_all(&part);
    }
    written
}

/// Makes the directory beside `dir`: `NAME.PID.part`. What is there already is somebody else's, and stays.
fn begin(dir: &Path) -> Result<PathBuf, CheckpointError> {
    let error = CheckpointError::io("create", dir);
    let Some(name) = dir.file_name() else { return Err(error(io::ErrorKind::InvalidInput.into())) };
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent).map_err(CheckpointError::io("create", parent))?;
    }
    // In containers process ids come again: one may have died here and left its own.
    for count in 0..MOST_LEFT {
        let again = if count == 0 { String::new() } else { format!("-{count}") };
        let mut name = name.to_owned();
        name.push(format!(".{}{again}.{PART}", std::process::id()));
        let part = dir.with_file_name(name);
        if part.with_extension(OLD).exists() {
            continue;
        }
        match fs::create_dir(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| part.clone()).map_err(CheckpointError::io("create", part)),
        }
    }
    Err(error(io::ErrorKind::AlreadyExists.into()))
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
    let old = part.with_extension(OLD);
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

/// Removes a directory that whole ones lie beside: it loses its name first, so that a kill leaves no half of it.
pub(super) fn remove_directory(dir: &Path) -> Result<(), CheckpointError> {
    let gone = dir.with_extension(format!("removed.{PART}"));
    if gone.exists() {
        fs::remove_dir_all(&gone).map_err(CheckpointError::io("remove", &gone))?;
    }
    fs::rename(dir, &gone).and_then(|()| fs::remove_dir_all(&gone)).map_err(CheckpointError::io("remove", dir))
}

/// Clears up after a process that died while it wrote or removed: parts go, and what was set aside comes back.
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
            Some(OLD) if replaced(&path).exists() => fs::remove_dir_all(&path)?,
            Some(OLD) => fs::rename(&path, replaced(&path))?,
            _ => {}
        }
    }
    Ok(())
}

/// What had been set aside as `NAME.PID.old`, or by an earlier version as `NAME.old`.
fn replaced(old: &Path) -> PathBuf {
    let path = old.with_extension("");
    let id = path.extension().and_then(|id| id.to_str());
    if id.is_some_and(|id| id.bytes().all(|b| b.is_ascii_digit() || b == b'-')) {
        path.with_extension("")
    } else {
        path
    }
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
    fn what_others_have_beside_it_stays() {
        let place = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let others = ["model.part".to_owned(), "model.old".to_owned(), format!("model.v1.{own}.part")];
        for name in &others {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("file"), "mine").unwrap();
        }
        let dir = place.path().join("model.v1");
        write_directory(&dir, fill("first")).unwrap();
        write_directory(&dir, fill("second")).unwrap();
        write_directory(&dir, |part| Err(CheckpointError::io("write", part)(io::ErrorKind::StorageFull.into())))
            .unwrap_err();
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "second");
        for name in &others {
            assert_eq!(fs::read_to_string(place.path().join(name).join("file")).unwrap(), "mine");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4);
        assert!(write_directory(Path::new(".."), fill("x")).is_err());
    }

    #[test]
    fn what_is_removed_has_no_name_any_more() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("step-000001");
        write_directory(&dir, fill("first")).unwrap();
        // Somebody died while he removed an earlier one of that name.
        fs::create_dir_all(place.path().join("step-000001.removed.part/export")).unwrap();
        remove_directory(&dir).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        fs::create_dir_all(place.path().join("step-000001.removed.part/export")).unwrap();
        recover(place.path()).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_left_is_cleared_up() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let left = ["step-000001.7.part", "step-000001.part", "step-000002.old", "step-000003", "step-000003.12-1.old"];
        for name in left.into_iter().chain(["step-000004.7.old"]) {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("file"), name).unwrap();
        }
        recover(place.path()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["step-000002", "step-000003", "step-000004"]);
        assert_eq!(fs::read_to_string(path("step-000003").join("file")).unwrap(), "step-000003");
        recover(&path("not there")).unwrap();
    }
}
