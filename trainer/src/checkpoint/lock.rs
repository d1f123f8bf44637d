//! One process at a time trains in a run.

use super::CheckpointError;
use crate::disk::Lock;
use std::path::Path;

/// While it lives, no other process resumes the run. It ends with the process, however that ends.
#[derive(Debug)]
pub struct RunLock {
    _lock: Lock,
}

impl RunLock {
    /// Takes a run's lock.
    ///
    /// # Errors
    /// Another process has it. Where the file system has no locks, nobody is kept out.
    pub fn take(run: &Path) -> Result<Self, CheckpointError> {
        let path = run.join("train.lock");
        let taken = Lock::take(&path).map_err(CheckpointError::io("write", &path))?;
        Ok(Self { _lock: taken.ok_or_else(|| CheckpointError::Busy { run: run.into() })? })
    }
}

#[cfg(test)]
mod tests {
    use super::RunLock;

    #[test]
    fn a_run_has_one_trainer() {
        let run = tempfile::tempdir().unwrap();
        let lock = RunLock::take(run.path()).unwrap();
        assert!(RunLock::take(run.path()).unwrap_err().to_string().contains("another process trains in it"));
        drop(lock);
        RunLock::take(run.path()).unwrap();
    }
}
