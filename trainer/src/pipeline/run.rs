//! Puts the lanes together, and takes them apart again whatever happens.

use super::checkpoint::{Checkpoints, Place, Saving};
use super::drafter_loop::{self, DrafterTrainLoop, shared_rows};
use super::observe::Observer;
use super::order::Order;
use super::target_loop::{self, TargetForwardLoop};
use super::{Batch, BufferedHSQueue, HiddenStates, lane, loader};
use crate::checkpoint::Snapshot;
use crate::config::{Config, FeatureCache, OnStop};
use crate::drafter::DFlashDrafter;
use crate::drafter::anchors::Row;
use crate::error::TrainError;
use crate::events::MetricsLog;
use crate::instrument;
use crate::target::Target;
use dflash_profiler::timeline::record::{Kind, Severity};
use dflash_profiler::{Lane, Profiler};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use tch::Device;

/// A training text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Token ids.
    pub ids: Vec<i64>,
    /// Which of them are supervised.
    pub loss_mask: Vec<bool>,
}

impl Text {
    pub(super) fn row(&self) -> Row<'_> {
        Row { ids: &self.ids, loss_mask: &self.loss_mask }
    }
}

/// What a training is made of.
pub struct Parts<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Training texts.
    pub samples: &'a [Text],
    /// The frozen target.
    pub target: Target,
    /// The drafter to train.
    pub drafter: DFlashDrafter,
    /// Where the drafter is.
    pub drafter_device: Device,
    /// Records the spans.
    pub profiler: &'a Profiler,
    /// Where checkpoints go.
    pub checkpoints: &'a Path,
    /// When they are written, and what they say.
    pub saving: Saving,
    /// Where to go on; `None`: from the beginning.
    pub resume: Option<Snapshot>,
    /// Watches.
    pub observer: &'a dyn Observer,
    /// Gets the metrics.
    pub metrics: MetricsLog,
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
    pub loop_seconds: Vec<(&'static str, f64)>,
}

/// What the lanes share.
pub(super) struct Shared<'a> {
    pub(super) samples: &'a [Text],
    /// Steps that were made by earlier attempts.
    pub(super) first: usize,
    /// Which attempt this is, from 1.
    pub(super) attempt: u32,
    pub(super) steps: usize,
    pub(super) log_every: u64,
    pub(super) batches: BufferedHSQueue<Batch>,
    pub(super) hidden_states: BufferedHSQueue<HiddenStates>,
    pub(super) feature_cache: FeatureCache,
    pub(super) profiler: &'a Profiler,
    pub(super) observer: &'a dyn Observer,
    pub(super) target_wait: WaitTime,
    pub(super) checkpoints: Checkpoints<'a>,
    warmup: u64,
    threads: usize,
    warnings: Mutex<Vec<String>>,
}

/// Time that a lane has waited, told across threads.
#[derive(Debug, Default)]
pub(super) struct WaitTime(AtomicU64);

impl WaitTime {
    pub(super) fn add(&self, duration: std::time::Duration) {
        self.0.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The share of `seconds` that was waited since the last call.
    pub(super) fn take_share(&self, seconds: f64) -> f64 {
        self.0.swap(0, Ordering::Relaxed) as f64 / 1e9 / seconds
    }
}

impl Shared<'_> {
    pub(super) fn kind(&self, iteration: u64) -> Kind {
        if iteration < self.warmup { Kind::Warmup } else { Kind::Train }
    }

    pub(super) fn tokens(&self, samples: &[usize]) -> u64 {
        samples.iter().map(|&i| self.samples[i].ids.len() as u64).sum()
    }

    pub(super) fn supervised(&self, samples: &[usize]) -> u64 {
        samples.iter().map(|&i| self.samples[i].loss_mask.iter().filter(|&&m| m).count() as u64).sum()
    }

    /// Notes something in the timeline, once.
    pub(super) fn warn(&self, text: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.iter().any(|w| w == text) {
            warnings.push(text.to_owned());
            self.profiler.mark(Severity::Warning, text);
        }
    }

    /// Notes something in the timeline, and tells the observer.
    pub(super) fn tell(&self, text: &str) {
        self.profiler.mark(Severity::Warning, text);
        self.observer.note(&format!("warning: {text}"));
    }

    fn abandon(&self) {
        self.batches.abandon();
        self.hidden_states.abandon();
    }

    /// libtorch's thread count is the calling thread's: every lane sets its own.
    fn set_threads(&self) {
        if self.threads > 0 {
            tch::set_num_threads(i32::try_from(self.threads).unwrap_or(1));
        }
    }
}

/// Trains until the steps are made, `stop` is set, or a lane fails.
///
/// # Errors
/// [`TrainError::Lane`] names the lane that failed and why; the other lanes have ended by then.
pub fn run(parts: Parts<'_>) -> Result<Outcome, TrainError> {
    let Parts { config, samples, target, drafter, drafter_device, profiler, observer, metrics, stop, .. } = parts;
    let mut order = Order::new(samples.iter().map(|s| s.ids.len()).collect(), config.train.batch, config.run.seed);
    let (first, batches) = parts.resume.as_ref().map_or((0, 0), |from| (from.state.step, from.state.loader.batch));
    let place = Place { profiler, observer, directory: parts.checkpoints };
    let attempt = parts.saving.attempt;
    let checkpoints = Checkpoints::new(place, target.config.clone(), parts.saving, order.epoch(), first);
    order.skip(batches);
    let shared = Shared {
        samples,
        first,
        attempt,
        steps: config.train.steps,
        log_every: config.profile.log_every as u64,
        batches: BufferedHSQueue::new(config.pipeline.batch_queue),
        hidden_states: BufferedHSQueue::new(config.pipeline.hs_queue),
        feature_cache: config.pipeline.feature_cache,
        profiler,
        observer,
        target_wait: WaitTime::default(),
        checkpoints,
        warmup: config.profile.warmup_iterations,
        threads: config.pipeline.threads,
        warnings: Mutex::default(),
    };
    let rows = shared_rows(&target, drafter_device);
    let taps = drafter.config.target_layer_ids.clone();
    note_capacities(profiler, config);
    std::thread::scope(|scope| {
        let shared = &shared;
        let target_device = device_name(target.device());
        let target_loop = TargetForwardLoop::new(shared, target, taps, drafter_device);
        let mut drafter_loop =
            DrafterTrainLoop::new(shared, &config.train, drafter, rows, metrics, ANCHOR_STREAM ^ config.run.seed);
        if let Some(from) = parts.resume {
            drafter_loop.resume(from)?;
        }
        let loader = start(scope, shared, loader::LANE, "cpu", move || loader::load(shared, order))?;
        let target = start(scope, shared, target_loop::LANE, &target_device, move || target_loop.run())?;
        let device = device_name(drafter_device);
        let drafter = start(scope, shared, drafter_loop::LANE, &device, move || drafter_loop.run())?;
        watch(shared, stop, config.checkpoint.on_stop, &drafter);
        let (loader, target) = (join(loader::LANE, loader), join(target_loop::LANE, target));
        let mut outcome = join(drafter_loop::LANE, drafter)?;
        outcome.loop_seconds.extend([(loader::LANE, loader?), (target_loop::LANE, target?)]);
        Ok(outcome)
    })
}

/// The anchors' random numbers are not those of the order.
const ANCHOR_STREAM: u64 = 1 << 63;

/// A depth says little without what it could be.
fn note_capacities(profiler: &Profiler, config: &Config) {
    let queues = [("batches", config.pipeline.batch_queue), ("hidden_states", config.pipeline.hs_queue)];
    for (name, capacity) in queues {
        profiler.counter(&format!("queue.{name}.capacity"), "items").record(capacity as f64);
    }
}

type Handle<'scope, T> = ScopedJoinHandle<'scope, Result<T, String>>;

fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'_>,
    name: &'static str,
    device: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'scope,
) -> Result<Handle<'scope, T>, TrainError> {
    let work = move || {
        shared.set_threads();
        work()
    };
    let lane = observed(shared.profiler.lane(name, device), device);
    lane::spawn(scope, name, lane, work, || shared.abandon()).map_err(|source| {
        shared.abandon();
        TrainError::Lane { lane: name, cause: format!("its thread could not be started: {source}") }
    })
}

/// A lane that also notes what its device's allocator does.
fn observed(lane: Lane, device: &str) -> Lane {
    let index = device.strip_prefix("cuda:").and_then(|index| index.parse().ok());
    match index.and_then(|index| instrument::allocator(Device::Cuda(index))) {
        Some(allocator) => lane.allocator(Box::new(allocator)),
        None => lane,
    }
}

/// Waits for the drafter's end, and closes the queues when somebody wants to stop.
fn watch<T>(shared: &Shared<'_>, stop: Stop<'_>, on_stop: OnStop, drafter: &Handle<'_, T>) {
    while !drafter.is_finished() {
        match (stop(), on_stop) {
            (true, OnStop::Drop) => shared.abandon(),
            // The loader's next batch finds no queue any more; the others go their way.
            (true, OnStop::Drain) => shared.batches.close(),
            (false, _) => {}
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Nobody takes hidden states any more: let the others go.
    shared.abandon();
}

fn join<T>(lane: &'static str, handle: Handle<'_, T>) -> Result<T, TrainError> {
    let ended = handle.join().unwrap_or_else(|cause| Err(lane::cause_text(cause.as_ref())));
    ended.map_err(|cause| TrainError::Lane { lane, cause })
}

fn device_name(device: Device) -> String {
    match device {
        Device::Cuda(n) => format!("cuda:{n}"),
        other => format!("{other:?}").to_lowercase(),
    }
}
