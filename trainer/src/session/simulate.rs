//! A simulated training, recorded in a run directory as a real one is.

use super::begin::Begin;
use super::record::start_profiler;
use super::together::Together;
use super::train::TrainOptions;
use super::trained::{Done, Trained, ended};
use crate::checkpoint::CheckpointError;
use crate::config::Config;
use crate::error::TrainError;
use crate::events::MetricsLog;
use crate::pipeline::{self, Observer, Simulation, Stop};
use dflash_profiler::timeline::RunDir;

/// As [`train`](super::train), on simulated devices: there is no model, and no drafter comes of it.
pub(super) fn simulate(
    config: &Config,
    options: &TrainOptions,
    observer: &dyn Observer,
    stop: Stop<'_>,
    together: &Together,
    begun: impl FnOnce(&RunDir),
) -> Result<Trained, TrainError> {
    if let Some(run) = &options.resume {
        return Err(CheckpointError::Simulated { run: run.path().into() }.into());
    }
    let Begin { run, lock, .. } = Begin::simulated(together, config, options)?;
    begun(&run);
    let trained = record(config, &run, together, observer, stop);
    ended(&run, together, observer, trained, lock)
}

fn record(
    config: &Config,
    run: &RunDir,
    together: &Together,
    observer: &dyn Observer,
    stop: Stop<'_>,
) -> Result<Trained, TrainError> {
    let start = || start_profiler(run, config, (1, together.rank()), false);
    let profiler = together.first_then_others(start)?;
    together.record_clock(&profiler);
    let requests = profiler.requests();
    let stop = || stop() || requests.stop() || together.ended().is_some();
    let open = || MetricsLog::open(run, config.drafter.block_size - 1);
    let metrics = together.is_first().then(open).transpose()?;
    let simulation =
        Simulation { config, profiler: &profiler, observer, metrics, ranks: together.ranks(), stop: &stop };
    let simulated = pipeline::simulate(simulation);
    profiler.finish();
    let trouble = profiler.trouble();
    let pipeline::Simulated { steps, tokens_per_s, loop_seconds } = simulated.map_err(|error| together.cause(error))?;
    let done = Done { steps, tokens_per_s: together.sum(tokens_per_s)?, loop_seconds, evaluation: None };
    Ok(Trained { trouble, ..Trained::new(run, together, config.train.steps, done) })
}
