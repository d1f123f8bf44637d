//! run.json on the disk: always whole, and also written once the disk is full.
//!
//! While a run goes on, `.run.json.spare` lies beside run.json: some kilobytes of blanks. Where a new file finds no room,
//! the spare one is written over and takes the name instead. So the run can say that its disk is full, and how it ended.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::RunDir;
use crate::error::{Error, Result};
use crate::manifest::{MANIFEST_SCHEMA, Manifest, State};

/// Bytes that a run.json may grow by before it finds no room in the spare file.
const GROWS_BY: usize = 8 << 10;

/// Within a process one at a time reads run.json and replaces it: else one's change would be lost.
static ALONE: Mutex<()> = Mutex::new(());

impl RunDir {
    /// Reads run.json.
    pub fn manifest(&self) -> Result<Manifest> {
        let path = self.path.join("run.json");
        let text = fs::read_to_string(&path).map_err(Error::io(&path, "read it"))?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|e| Error::Manifest {
            path: path.clone(),
            line: e.line(),
            column: e.column(),
            problem: e.to_string(),
        })?;
        if manifest.schema > MANIFEST_SCHEMA {
            return Err(Error::TooNew { path, version: manifest.schema, known: MANIFEST_SCHEMA });
        }
        Ok(manifest)
    }

    /// Replaces run.json; whoever reads it meanwhile sees the old one or the new one, whole.
    ///
    /// # Errors
    /// If the system refuses; the old one is still there then.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(manifest)
    }

    /// Reads run.json, changes it and replaces it; nothing else of this process can come between.
    ///
    /// # Errors
    /// If it cannot be read or replaced.
    pub fn amend_manifest(&self, change: impl FnOnce(&mut Manifest)) -> Result<()> {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut manifest = self.manifest()?;
        change(&mut manifest);
        self.replace(&manifest)
    }

    fn replace(&self, manifest: &Manifest) -> Result<()> {
        let (path, spare) = (self.path.join("run.json"), self.path.join(".run.json.spare"));
        let write = || {
            let text = serde_json::to_string_pretty(manifest)? + "\n";
            if let Err(error) = write_anew(&self.beside(), &path, &text) {
                // Why the other way was not possible either is of no use to anyone.
                write_over(&spare, &self.beside(), &path, &text).map_err(|_| error)?;
            }
            if manifest.state == State::Running {
                // Without it the next change may find no room; the training is no worse for it now.
                let _ = keep_spare(&self.beside(), &spare, text.len() + GROWS_BY);
            } else {
                let _ = fs::remove_file(&spare);
            }
            Ok(())
        };
        write().map_err(Error::io(&path, "write it"))
    }

    /// A name that no other process uses.
    fn beside(&self) -> PathBuf {
        self.path.join(format!(".run.json.{}", std::process::id()))
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

/// Writes over a file that has room, and gives it the name; what had the name is the spare file from then on.
fn write_over(spare: &Path, beside: &Path, path: &Path, text: &str) -> io::Result<()> {
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
fn keep_spare(beside: &Path, spare: &Path, bytes: usize) -> io::Result<()> {
    if fs::metadata(spare).is_ok_and(|found| found.len() >= bytes as u64) {
        return Ok(());
    }
    // Written, so that its blocks are its own: a length alone takes none.
    write_anew(beside, spare, &" ".repeat(bytes))
}
