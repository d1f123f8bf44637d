//! What goes into a training on real models, and what comes of it.

use super::checkpoint::Saving;
use super::held_out::HeldOut;
use super::observe::Observer;
use super::shared::Among;
use crate::checkpoint::Snapshot;
use crate::config::Config;
use crate::drafter::{DFlashDrafter, Row};
use crate::eval::RunEvaluation;
use crate::events::MetricsLog;
use crate::features::DiskFeatures;
use crate::ranks::Ranks;
use crate::target::Target;
use dflash_profiler::Profiler;
use std::path::Path;
use std::sync::Arc;
use tch::Device;

/// A training text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Token ids.
    pub ids: Vec<i64>,
    /// Which of them are supervised.
    pub loss_mask: Vec<bool>,
    /// What messages call it.
    pub name: String,
    /// Of several samples in one row: the number of each token's.
    pub documents: Option<Vec<i64>>,
}

impl Text {
    pub(crate) fn row(&self) -> Row<'_> {
        Row { ids: &self.ids, loss_mask: &self.loss_mask, documents: self.documents.as_deref(), positions: None }
    }
}

/// What a training is made of.
pub struct Parts<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Training texts.
    pub samples: &'a [Text],
    /// The frozen target, once for each worker.
    pub targets: Vec<Target>,
    /// The drafter to train. Every worker gets a copy of it.
    pub drafter: DFlashDrafter,
    /// Where the drafters are: a worker each.
    pub drafter_devices: Vec<Device>,
    /// Records the spans.
    pub profiler: &'a Profiler,
    /// Where checkpoints go.
    pub checkpoints: &'a Path,
    /// When they are written, and what they say.
    pub saving: Saving,
    /// Hidden states on the disk, with `feature_cache = "disk"`.
    pub features: Option<DiskFeatures>,
    /// Where to go on; `None`: from the beginning.
    pub resume: Option<Snapshot>,
    /// What the drafter is evaluated on every `[eval] every` steps; `None`: it is not.
    pub held_out: Option<HeldOut>,
    /// Watches.
    pub observer: &'a dyn Observer,
    /// Gets the metrics; on other ranks than 0 there are none.
    pub metrics: Option<MetricsLog>,
    /// The other processes, and this one's drafters among those of all; `None`: there is one process.
    pub ranks: Option<(Arc<Ranks>, Among)>,
    /// Asked now and then; true ends the training early, after the steps that are under way.
    pub stop: Stop<'a>,
}

/// Whether somebody wants the training to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// What came of a training.
pub struct Outcome {
    /// The trained drafter.
    pub drafter: DFlashDrafter,
    /// Steps made.
    pub steps: usize,
    /// Context tokens a second over the whole loop, without padding.
    pub tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub loop_seconds: Vec<(String, f64)>,
    /// What an evaluation after the last step has found, if there was one.
    pub evaluation: Option<RunEvaluation>,
}
