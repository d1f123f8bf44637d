//! Where the socket lies: in a directory that only this user can enter, at a path short enough for a socket.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dflash_timeline::control::{connect, of_rank};

/// Bytes that the path of a socket may have: `sun_path` has 108, the last one is 0.
const LONGEST: usize = 107;
/// How long whoever holds a socket's name may take to show that it lives.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes the socket of a run's process. Returns it and its path.
///
/// The error says for each directory that was tried why it will not do.
pub(super) fn bind(run: &Path, rank: u32) -> Result<(UnixListener, PathBuf), String> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid = dflash_sys::effective_uid();
    let places = places(runtime.as_deref(), &std::env::temp_dir(), uid);
    let mut problems = Vec::new();
    for directory in places {
        match own_directory(&directory, uid).and_then(|()| bind_in(&directory, run, rank)) {
            Ok(bound) => return Ok(bound),
            Err(problem) => problems.push(format!("{}: {problem}", directory.display())),
        }
    }
    Err(problems.join("; "))
}

/// The directories to try, in this order.
fn places(runtime: Option<&Path>, temporary: &Path, uid: u32) -> Vec<PathBuf> {
    let own = format!("dflash-{uid}");
    let runtime = runtime.filter(|directory| directory.is_absolute()).map(|directory| directory.join("dflash"));
    let mut places: Vec<PathBuf> = runtime.into_iter().collect();
    for parent in [temporary, Path::new("/tmp")] {
        let place = parent.join(&own);
        if parent.is_absolute() && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Makes sure of a directory that this user owns and nobody else can enter.
fn own_directory(directory: &Path, uid: u32) -> Result<(), String> {
    let parent = directory.parent().unwrap_or(Path::new("/"));
    let above = fs::metadata(parent).map_err(|error| error.to_string())?;
    // Where others may rename what is not theirs, a check holds only until they do.
    let sticky = above.mode() & 0o1000 != 0;
    if (above.mode() & 0o022 != 0 && !sticky) || (above.uid() != uid && above.uid() != 0) {
        return Err(format!("others may change what lies in {}", parent.display()));
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.to_string()),
        _ => {}
    }
    // Not followed: a link that another user planted there leads anywhere.
    let found = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    if !found.is_dir() || found.uid() != uid {
        return Err("it is not a directory of this user".to_owned());
    }
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Binds `<hash of the run>.sock`. What a process that was killed left there is removed; where one answers, another
/// name is taken.
fn bind_in(directory: &Path, run: &Path, rank: u32) -> Result<(UnixListener, PathBuf), String> {
    let full = fs::canonicalize(run).unwrap_or_else(|_| run.to_owned());
    let hash = hash(full.as_os_str());
    let names = [format!("{hash:016x}.sock"), format!("{hash:016x}-{}.sock", std::process::id())];
    let mut problem = String::new();
    for path in names.map(|name| of_rank(&directory.join(name), rank)) {
        if path.as_os_str().len() > LONGEST {
            return Err(format!("a socket's path has at most {LONGEST} bytes, there it would have more"));
        }
        match bind_at(&path) {
            Ok(listener) => return Ok((listener, path)),
            Err(text) => problem = text,
        }
    }
    Err(problem)
}

fn bind_at(path: &Path) -> Result<UnixListener, String> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && connect(path, PATIENCE).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        // That it is gone already is as good.
        let _ = fs::remove_file(path);
    }
    let listener = UnixListener::bind(path).map_err(|error| error.to_string())?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
    Ok(listener)
}

/// FNV-1a: the same in every version, so that a new one finds what an old one left.
fn hash(text: &OsStr) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
