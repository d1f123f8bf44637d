//! The end of a run that died between its last checkpoint and its export.

use super::together::Together;
use super::train::{Trained, ended_now};
use crate::checkpoint;
use crate::drafter;
use crate::error::TrainError;
use crate::pipeline::Observer;
use crate::target::TargetConfig;
use dflash_profiler::timeline::{RunDir, State};
use std::path::Path;
use tch::{Device, Kind};

/// Exports the drafter of the last checkpoint, and closes the run as finished. No step is made, and no attempt begins.
pub(super) fn finish(
    run: &RunDir,
    last: &Path,
    target: &TargetConfig,
    steps: usize,
    together: &Together,
    observer: &dyn Observer,
) -> Result<Trained, TrainError> {
    let dir = run.checkpoints().join(checkpoint::EXPORT);
    if together.is_first() {
        let drafter = drafter::load(&last.join(checkpoint::EXPORT), Kind::BFloat16, Device::Cpu)?;
        checkpoint::export(&drafter, target, &dir)?;
        let mut manifest = run.manifest()?;
        manifest.ended_unix_ns = ended_now();
        manifest.state = State::Finished;
        manifest.outcome = Some(format!("{steps} steps"));
        manifest.results.insert("steps".to_owned(), steps.into());
        run.write_manifest(&manifest)?;
    }
    // The others wait for it.
    together.part(observer)?;
    let (tokens_per_s, loop_seconds) = (0.0, Vec::new());
    Ok(Trained {
        run: run.clone(),
        rank: together.rank(),
        steps,
        tokens_per_s,
        loop_seconds,
        drafter: Some(dir),
        evaluation: None,
        stopped: false,
        trouble: None,
    })
}
