//! When checkpoints are written: every so many steps, when a user asks, and at the end.

use super::DrafterStep;
use super::lane::cause_text;
use super::observe::Observer;
use crate::checkpoint::{self, CheckpointError, Identity, Loader, State};
use crate::eval::RunEvaluation;
use crate::target::TargetConfig;
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{IterationGuard, Kind, Profiler, Requests, begin_iteration, span};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a training's checkpoints have in common.
#[derive(Clone, Debug, Default)]
pub struct Saving {
    /// Steps between two; 0: only when asked and at the end.
    pub every: usize,
    /// How many stay; 0 = all.
    pub keep: usize,
    /// Attempt of the run, from 1.
    pub attempt: u32,
    /// Seed of the order and of what is drawn for each batch.
    pub seed: u64,
    /// Batches that a step takes from the loader.
    pub batches_per_step: u64,
    /// Batches come as several targets make them.
    pub arrival: bool,
    /// What the training is made from.
    pub identity: Identity,
    /// None is written: what is trained is not worth it.
    pub never: bool,
}

/// Writes checkpoints.
pub(super) struct Checkpoints<'a> {
    requests: Requests,
    profiler: &'a Profiler,
    observer: &'a dyn Observer,
    target: TargetConfig,
    /// The run's `checkpoints/`.
    directory: &'a Path,
    saving: Saving,
    /// Batches of an epoch.
    epoch: u64,
    /// Step of the newest that was written, or that was resumed from.
    newest: AtomicUsize,
    /// The last evaluation's step and figures.
    evaluated: Mutex<Option<(usize, Value)>>,
}

/// Where checkpoints go and who is told.
pub(super) struct Place<'a> {
    pub(super) profiler: &'a Profiler,
    pub(super) observer: &'a dyn Observer,
    pub(super) directory: &'a Path,
}

impl<'a> Checkpoints<'a> {
    /// `first`: steps that have been made already.
    pub(super) fn new(place: Place<'a>, target: TargetConfig, saving: Saving, epoch: u64, first: usize) -> Self {
        let Place { profiler, observer, directory } = place;
        let (newest, evaluated) = (AtomicUsize::new(first), Mutex::default());
        Self { requests: profiler.requests(), profiler, observer, target, directory, saving, epoch, newest, evaluated }
    }

    /// Writes one after `step` steps, if it is time or somebody asks; the pass becomes one of its own kind. What fails
    /// leaves a warning, and never the training's end.
    pub(super) fn after_step(&self, pass: &IterationGuard, learner: &DrafterStep, step: usize) {
        let asked = self.requests.take_checkpoint();
        let due = self.saving.every > 0 && step.is_multiple_of(self.saving.every);
        if self.saving.never && asked {
            let why = "what is trained has random weights and texts, and is not kept".to_owned();
            self.requests.checkpoint_written(Err(why));
        }
        if self.saving.never || !(asked || due) {
            return;
        }
        pass.kind(Kind::Checkpoint);
        let written = self.write(learner, step);
        if asked {
            self.requests.checkpoint_written(written);
        }
    }

    /// Writes the last one, unless the last step has its own already.
    pub(super) fn at_end(&self, learner: &DrafterStep, step: usize) {
        if !self.saving.never && step > self.newest.load(Ordering::Relaxed) {
            let _pass = begin_iteration(Kind::Checkpoint);
            let _ = self.write(learner, step);
        }
    }

    /// Takes note of what an evaluation after `step` steps has found: for the checkpoint of that step, which is there or
    /// will be.
    pub(super) fn evaluated(&self, step: usize, evaluation: &RunEvaluation) {
        *self.evaluated.lock().unwrap_or_else(PoisonError::into_inner) = Some((step, evaluation.figures()));
        if step == self.newest.load(Ordering::Relaxed) {
            self.write_figures(step);
            self.prune();
        }
    }

    fn write_figures(&self, step: usize) {
        let evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((_, figures)) = evaluated.filter(|(at, _)| *at == step) else { return };
        if let Err(error) = checkpoint::write_figures(&checkpoint::directory(self.directory, step), &figures) {
            self.warn(&format!("checkpoint: {error}"));
        }
    }

    /// The newest, if there is one.
    pub(super) fn newest(&self) -> Option<PathBuf> {
        let step = self.newest.load(Ordering::Relaxed);
        (step > 0).then(|| checkpoint::directory(self.directory, step))
    }

    /// Returns where the drafter lies, or what to tell.
    fn write(&self, learner: &DrafterStep, step: usize) -> Result<PathBuf, String> {
        let _span = span!("drafter.checkpoint");
        let dir = checkpoint::directory(self.directory, step);
        // Out of memory arrives as a panic of tch.
        let written = catch_unwind(AssertUnwindSafe(|| self.save(learner, &dir, step).map_err(|e| e.to_string())))
            .unwrap_or_else(|cause| Err(cause_text(cause.as_ref())));
        match written {
            Ok(()) => {
                self.newest.store(step, Ordering::Relaxed);
                let export = dir.join(checkpoint::EXPORT);
                self.profiler.mark(Severity::Info, &format!("checkpoint: step {step} is in {}", export.display()));
                self.write_figures(step);
                self.prune();
                Ok(export)
            }
            Err(error) => {
                self.warn(&format!("checkpoint: step {step} could not be written: {error}"));
                Err(format!("{}: cannot write it: {error}", dir.display()))
            }
        }
    }

    fn save(&self, learner: &DrafterStep, dir: &Path, step: usize) -> Result<(), CheckpointError> {
        let batch = step as u64 * self.saving.batches_per_step;
        let loader = Loader {
            seed: self.saving.seed,
            batch,
            epoch: batch / self.epoch,
            index: batch % self.epoch,
            arrival: self.saving.arrival,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let state = State {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attempt: self.saving.attempt,
            step,
            saved_unix_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            loader,
            identity: self.saving.identity.clone(),
            ..State::default()
        };
        let export = |export: &Path| checkpoint::fill(&learner.drafter, &self.target, export);
        checkpoint::write(dir, &state, &learner.optimizer.state(), export)
    }

    fn prune(&self) {
        for error in checkpoint::prune(self.directory, self.saving.keep) {
            self.warn(&format!("checkpoint: {error}"));
        }
    }

    fn warn(&self, text: &str) {
        self.profiler.mark(Severity::Warning, text);
        self.observer.note(&format!("warning: {text}"));
    }
}
