//! Where a trace of kernels lies: in the run directory, never over another, never seen half-written.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use dflash_timeline::RunDir;
use dflash_timeline::control::KernelWindow;

use crate::KernelCapture;

/// `kernels-<first>-<n>.json`, with the rank if it is not 0, and with `-2`, `-3`, … behind it if it exists.
pub(super) fn unused(run: &RunDir, window: &KernelWindow) -> PathBuf {
    let rank = if window.rank == 0 { String::new() } else { format!("-rank{}", window.rank) };
    let stem = format!("kernels-{}-{}{rank}", window.first, window.asked);
    let mut file = run.path().join(format!("{stem}.json"));
    let mut number = 2;
    while exists(&file) || exists(&KernelWindow::path_of(&file)) {
        file = run.path().join(format!("{stem}-{number}.json"));
        number += 1;
    }
    file
}

/// Also true of a link that leads nowhere.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Stops the tracer and puts its trace at `file`, the window's file beside it. Returns where it is.
pub(super) fn write(
    tracer: &dyn KernelCapture,
    file: &Path,
    window: &mut KernelWindow,
    lanes: &[String],
) -> Result<PathBuf, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = file.with_file_name(format!(".{name}"));
    // Left by a process that was killed; the tracer wants a name that is free.
    let _ = fs::remove_file(&beside);
    tracer.stop(&beside).map_err(|error| error.to_string())?;
    window.lacks.extend(tracer.lanes_without_operators(lanes).iter().map(|lane| format!("operators of {lane}")));
    window.trace = name;
    let kept = window.write(file).map_err(|error| error.to_string()).and_then(|()| publish(&beside, file));
    // Either it has its name, or it is of no use to anyone.
    let _ = fs::remove_file(&beside);
    kept.map(|()| file.to_owned())
}

/// Gives a file its name, which must be free: a rename would replace what has come there meanwhile.
fn publish(beside: &Path, file: &Path) -> Result<(), String> {
    let says = |error: std::io::Error| format!("{}: cannot write it: {error}", file.display());
    match fs::hard_link(beside, file) {
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Err(says(error)),
        // Not every file system has hard links.
        Err(_) if !exists(file) => fs::rename(beside, file).map_err(says),
        linked => linked.map_err(says),
    }
}
