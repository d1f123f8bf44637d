//! The end of a run that died between its last checkpoint and its export.

use super::together::Together;
use super::trained::{Done, Trained};
use crate::checkpoint;
use crate::drafter;
use crate::error::TrainError;
use crate::target::TargetConfig;
use dflash_profiler::timeline::RunDir;
use std::path::Path;
use tch::{Device, Kind};

/// Exports the drafter of the last checkpoint. No step is made, and no attempt begins.
pub(super) fn finish(
    run: &RunDir,
    last: &Path,
    target: &TargetConfig,
    steps: usize,
    together: &Together,
) -> Result<Trained, TrainError> {
    let dir = run.checkpoints().join(checkpoint::EXPORT);
    if together.is_first() {
        let drafter = drafter::load(&last.join(checkpoint::EXPORT), Kind::BFloat16, Device::Cpu)?;
        checkpoint::export(&drafter, target, &dir)?;
    }
    let done = Done { steps, ..Done::default() };
    Ok(Trained { drafter: Some(dir), ..Trained::new(run, together, steps, done) })
}
