//! A small file that is always whole, and can also be replaced once the disk is full.
//!
//! While that is wanted, `.NAME.spare` lies beside it: some kilobytes of blanks. Where a new file finds no room, the spare one
//! is written over and takes the name instead. So a run can say that its disk is full, and how it ended.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    spare: PathBuf,
    /// A name that no other process uses.
    beside: PathBuf,
}

impl KeptFile {
    pub(super) fn new(directory: &Path, name: &str) -> Self {
        let at = |name: String| directory.join(name);
        let (spare, beside) = (at(format!(".{name}.spare")), at(format!(".{name}.{}", std::process::id())));
        Self { path: directory.join(name), spare, beside }
    }

    /// Replaces it; whoever reads it meanwhile sees the old one or the new one, whole.
    pub(super) fn replace(&self, text: &str) -> io::Result<()> {
        // Why the other way was not possible either is of no use to anyone.
        write_anew(&self.beside, &self.path, text).or_else(|error| self.write_over(text).map_err(|_| error))
    }

    /// Writes over the spare file, and gives it the name; what had the name is the spare file from then on.
    fn write_over(&self, text: &str) -> io::Result<()> {
        let Self { path, spare, beside } = self;
        let mut file = File::options().write(true).open(spare)?;
        let room = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        // Blanks up to its end: blocks that are given back now are somebody else's the next time.
        file.write_all(text.as_bytes())?;
        file.write_all(" ".repeat(room.saturating_sub(text.len())).as_bytes())?;
        file.sync_all()?;
        let kept = fs::hard_link(path, beside);
        fs::rename(spare, path)?;
        // Without it the next change may find no room; this one is done.
        kept.and_then(|()| fs::rename(beside, spare)).or(Ok(()))
    }

    /// Sees to it that there is a spare file of so many bytes at least.
    pub(super) fn keep_spare(&self, bytes: usize) -> io::Result<()> {
        if fs::metadata(&self.spare).is_ok_and(|found| found.len() >= bytes as u64) {
            return Ok(());
        }
        // Written, so that its blocks are its own: a length alone takes none.
        write_anew(&self.beside, &self.spare, &" ".repeat(bytes))
    }

    /// Gives its room back.
    pub(super) fn drop_spare(&self) {
        let _ = fs::remove_file(&self.spare);
    }

    /// Removes it if it says nothing.
    pub(super) fn drop_if_blank(&self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text.trim().is_empty()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a new file and gives it the name.
fn write_anew(beside: &Path, path: &Path, text: &str) -> io::Result<()> {
    let write = || {
        let mut file = File::create(beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(beside)))
}
