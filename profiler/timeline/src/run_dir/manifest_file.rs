//! run.json on the disk: always whole, and also written once the disk is full, as long as the run goes on.

use std::fs;
use std::sync::{Mutex, PoisonError};

use super::RunDir;
use super::kept_file::KeptFile;
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
        let file = KeptFile::new(&self.path, "run.json");
        let write = || {
            let text = serde_json::to_string_pretty(manifest)? + "\n";
            file.replace(&text)?;
            if manifest.state == State::Running {
                // Without it the next change may find no room; the training is no worse for it now.
                let _ = file.keep_spare(text.len() + GROWS_BY);
            } else {
                file.drop_spare();
            }
            Ok(())
        };
        write().map_err(Error::io(&self.path.join("run.json"), "write it"))
    }
}
