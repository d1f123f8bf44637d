//! A simulated training, recorded in a run directory as a real one is.

use super::begin::manifest;
use super::record::start_profiler;
use super::train::{TrainOptions, Trained, close};
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
    begun: impl FnOnce(&RunDir),
) -> Result<Trained, TrainError> {
    if let Some(run) = &options.resume {
        return Err(CheckpointError::Simulated { run: run.path().into() }.into());
    }
    let run = RunDir::create(&config.run.dir, &config.run.name, manifest(config, options, false))?;
    begun(&run);
    let trained = record(config, &run, observer, stop);
    let closed = close(&run, &trained);
    let trained = trained?;
    closed.map(|()| trained)
}

fn record(config: &Config, run: &RunDir, observer: &dyn Observer, stop: Stop<'_>) -> Result<Trained, TrainError> {
    let profiler = start_profiler(run, config, 1, false)?;
    let requests = profiler.requests();
    let stop = || stop() || requests.stop();
    let metrics = MetricsLog::open(run, config.drafter.block_size - 1)?;
    let simulation = Simulation { config, profiler: &profiler, observer, metrics, stop: &stop };
    let simulated = pipeline::simulate(simulation);
    profiler.finish();
    let trouble = profiler.trouble();
    let pipeline::Simulated { steps, tokens_per_s, loop_seconds } = simulated?;
    let stopped = steps < config.train.steps;
    Ok(Trained {
        run: run.clone(),
        steps,
        tokens_per_s,
        loop_seconds,
        drafter: None,
        evaluation: None,
        stopped,
        trouble,
    })
}
