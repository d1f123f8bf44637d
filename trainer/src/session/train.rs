//! A training run from its configuration to its exported drafter, all of it recorded in a run directory.

use super::begin::Begin;
use super::features::features;
use super::finish::finish;
use super::load::{Loaded, load, on_gpu};
use super::random;
use super::record::start_profiler;
use super::simulate::simulate;
use super::started::started_with;
use super::together::{Quiet, Together};
use super::trained::{Done, Trained, ended};
use crate::checkpoint::{self, Identity, Snapshot};
use crate::config::{Config, Delivery};
use crate::error::TrainError;
use crate::events::MetricsLog;
use crate::features::DiskFeatures;
use crate::pipeline::lane::cause_text;
use crate::pipeline::{self, Observer, Parts, Saving, Stop};
use crate::ranks::{Facts, Launch};
use crate::target::TargetConfig;
use dflash_profiler::timeline::RunDir;
use dflash_profiler::{Profiler, Severity};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the command line adds to the configuration.
#[derive(Clone, Debug, Default)]
pub struct TrainOptions {
    /// The command line, for run.json.
    pub command: Vec<String>,
    /// The configuration file, as it was given, for messages.
    pub config_name: String,
    /// The commit that the program was built from, for run.json.
    pub commit: Option<String>,
    /// A run to go on in, instead of a new one.
    pub resume: Option<RunDir>,
    /// Keys that the command line changes on purpose, and in which a checkpoint may differ if they are of
    /// those that can be changed on the way: `train.steps`, `train.learning_rate`, …
    pub given: Vec<String>,
    /// Which of several processes this is; `None`: the only one.
    pub launch: Option<Launch>,
}

/// Trains a drafter. `stop` is asked now and then: true ends early with what has been learnt; `begun` is told the run
/// directory, on rank 0.
///
/// # Errors
/// Bad input before anything is written; a lane that failed, with the run directory closed as failed.
pub fn train(
    config: &Config,
    options: &TrainOptions,
    observer: &dyn Observer,
    stop: Stop<'_>,
    begun: impl FnOnce(&RunDir),
) -> Result<Trained, TrainError> {
    let together = Together::begin(config, options, &|| stop())?;
    let quiet = Quiet { observer, rank: together.rank() };
    let observer = if together.is_first() { observer } else { &quiet };
    let begun = |run: &RunDir| {
        if together.is_first() {
            begun(run);
        }
    };
    let trained = train_together(config, options, observer, stop, &together, begun);
    if let Err(error) = &trained {
        together.tell_failure(error);
    }
    trained
}

fn train_together(
    config: &Config,
    options: &TrainOptions,
    observer: &dyn Observer,
    stop: Stop<'_>,
    together: &Together,
    begun: impl FnOnce(&RunDir),
) -> Result<Trained, TrainError> {
    if config.pipeline.is_simulated() {
        return simulate(config, options, observer, stop, together, begun);
    }
    if let Some(run) = options.resume.as_ref().filter(|_| config.random.is_on()) {
        return Err(random::nothing_kept(run));
    }
    let resumes = together.resumes(options.resume.is_some(), &|| stop())?;
    let loaded = load(config, options, together, resumes)?;
    let target_config = loaded.target_config.clone();
    together.agree(|| started_with(&loaded), &|| stop())?;
    // What was refused must leave nothing behind; and no run begins before all have what they need.
    let features = features(config, &loaded, together.rank())?;
    together.agree(Facts::new, &|| stop())?;
    let begin = Begin::together(together, config, options, &loaded.identity, on_gpu(&loaded))?;
    let Begin { run, attempt, snapshot, notes, lock, complete } = begin;
    begun(&run);
    let notes: Vec<String> = notes.into_iter().chain(features.iter().map(there)).collect();
    notes.iter().for_each(|note| observer.note(note));
    if let Some(checkpoint) = complete {
        let trained = finish(&run, &checkpoint, &target_config, config.train.steps, together);
        return ended(&run, together, observer, trained, lock);
    }
    let loaded = (loaded, features);
    let work = || record(config, loaded, &target_config, (&run, attempt, snapshot), &notes, (observer, stop), together);
    // Outside the lanes too, running out of memory arrives as a panic of tch.
    let trained = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        Err(TrainError::Lane { lane: "the training".to_owned(), cause: cause_text(cause.as_ref()) })
    });
    ended(&run, together, observer, trained, lock)
}

/// Trains and exports, with the profiler running.
fn record(
    config: &Config,
    (loaded, features): (Loaded, Option<DiskFeatures>),
    target: &TargetConfig,
    (run, attempt, snapshot): (&RunDir, u32, Option<Snapshot>),
    notes: &[String],
    (observer, stop): (&dyn Observer, Stop<'_>),
    together: &Together,
) -> Result<Trained, TrainError> {
    let start = || start_profiler(run, config, (attempt, together.rank()), on_gpu(&loaded));
    let profiler = together.first_then_others(start)?;
    together.record_clock(&profiler);
    notes.iter().for_each(|note| profiler.mark(Severity::Info, note));
    let requests = profiler.requests();
    let stop = || stop() || requests.stop() || together.ended().is_some();
    let outcome =
        run_pipeline(config, (loaded, features), (run, attempt, snapshot), &profiler, observer, &stop, together);
    profiler.finish();
    // After the end: the last blocks may be the ones that find no room.
    let trouble = profiler.trouble();
    let mut outcome = outcome.map_err(|error| together.cause(error))?;
    outcome.tokens_per_s = together.sum(outcome.tokens_per_s)?;
    export(outcome, target, run, config, together, trouble)
}

/// What is told of the hidden states on the disk.
fn there(features: &DiskFeatures) -> String {
    let ((made, all), place) = (features.progress(), features.directory().display());
    format!("hidden states: {made} of {all} rows are in {place}")
}

fn run_pipeline(
    config: &Config,
    (loaded, features): (Loaded, Option<DiskFeatures>),
    (run, attempt, resume): (&RunDir, u32, Option<Snapshot>),
    profiler: &Profiler,
    observer: &dyn Observer,
    stop: Stop<'_>,
    together: &Together,
) -> Result<pipeline::Outcome, TrainError> {
    let slots = loaded.drafter.config.block_size as usize - 1;
    let checkpoints = run.checkpoints();
    pipeline::run(Parts {
        config,
        samples: &loaded.samples,
        targets: loaded.targets,
        drafter: loaded.drafter,
        drafter_devices: loaded.drafter_devices,
        profiler,
        checkpoints: &checkpoints,
        saving: saving(config, attempt, loaded.identity),
        resume,
        held_out: loaded.held_out,
        features,
        observer,
        metrics: together.is_first().then(|| MetricsLog::open(run, slots)).transpose()?,
        ranks: together.ranks(),
        stop,
    })
}

fn saving(config: &Config, attempt: u32, identity: Identity) -> Saving {
    let (every, keep) = (config.checkpoint.every, config.checkpoint.keep);
    let arrival = config.pipeline.order == Delivery::Arrival && config.pipeline.targets().len() > 1;
    let (seed, batches_per_step) = (config.run.seed, config.train.accumulate as u64);
    Saving { every, keep, attempt, seed, batches_per_step, arrival, identity, never: config.random.is_on() }
}

fn export(
    outcome: pipeline::Outcome,
    target: &TargetConfig,
    run: &RunDir,
    config: &Config,
    together: &Together,
    trouble: Option<String>,
) -> Result<Trained, TrainError> {
    let dir = (!config.random.is_on()).then(|| run.checkpoints().join(checkpoint::EXPORT));
    if let Some(dir) = dir.as_ref().filter(|_| together.is_first()) {
        checkpoint::export(&outcome.drafter, target, dir)?;
    }
    let pipeline::Outcome { steps, tokens_per_s, loop_seconds, evaluation, .. } = outcome;
    let done = Done { steps, tokens_per_s, loop_seconds, evaluation };
    Ok(Trained { drafter: dir, trouble, ..Trained::new(run, together, config.train.steps, done) })
}
