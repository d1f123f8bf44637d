//! What the lanes share.

use super::observe::Observer;
use super::parts::Text;
use super::pauses::Pauses;
use super::post_loop::Posted;
use super::work::World;
use super::{Batch, BufferedHSQueue, HiddenStates, lane};
use crate::config::OnStop;
use dflash_profiler::timeline::record::{Kind, Severity};
use dflash_profiler::{IterationGuard, Profiler};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Queues, settings and the first failure.
pub(super) struct Shared<'a, W: World> {
    pub(super) samples: &'a [Text],
    /// The step that the training ends with, and the one that it begins with: 0, or where an earlier attempt ended.
    pub(super) steps: usize,
    pub(super) first: usize,
    /// Which attempt this is, from 1.
    pub(super) attempt: u32,
    /// Batches of a step for each drafter.
    pub(super) accumulate: usize,
    /// Targets and drafters there are in this process.
    pub(super) targets: usize,
    pub(super) drafters: usize,
    /// Number of this process's first drafter among those of all processes, and how many these are.
    pub(super) among: Among,
    /// Whether a batch's drafter follows from its number.
    pub(super) strict: bool,
    /// Whether samples are read once only.
    pub(super) read_once: bool,
    /// What becomes of the batches that are under way at a stop.
    pub(super) on_stop: OnStop,
    pub(super) log_every: u64,
    /// Steps between two evaluations; 0: none.
    pub(super) eval_every: usize,
    pub(super) batches: BufferedHSQueue<Batch<W::Ids>>,
    pub(super) hidden_states: BufferedHSQueue<HiddenStates<W::Taps>>,
    /// From each target to its post lane; none where there is no such lane.
    pub(super) posts: Vec<BufferedHSQueue<Posted<W>>>,
    pub(super) profiler: &'a Profiler,
    pub(super) observer: &'a dyn Observer,
    pub(super) target_wait: WaitTime,
    pub(super) pauses: Pauses,
    pub(super) warmup: u64,
    pub(super) threads: usize,
    pub(super) ends: Ends<'a>,
    pub(super) warnings: Mutex<Vec<String>>,
}

/// Drafters of one process among those of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Among {
    /// Number of the first one.
    pub first: usize,
    /// How many there are in all processes.
    pub all: usize,
}

/// How lanes end: how many still make hidden states, and which was the first to fail.
pub(super) struct Ends<'a> {
    pub(super) makers: AtomicUsize,
    pub(super) failure: Mutex<Option<Failure>>,
    /// What else has to stop when the queues are abandoned.
    pub(super) also: &'a (dyn Fn() + Sync),
    /// The training is coming to its end: what takes long is not begun any more.
    pub(super) stopping: AtomicBool,
}

/// A lane and why it failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) lane: String,
    pub(super) cause: String,
}

/// Time that lanes have waited, told across threads.
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

impl<W: World> Shared<'_, W> {
    /// A pass has waited for room since `began`. What was waited for an evaluation says nothing about who limits: that pass is
    /// set apart, as the drafters' is.
    pub(super) fn waited(&self, pass: &IterationGuard, began: Instant) -> Duration {
        let (waited, paused) = (began.elapsed(), self.pauses.since(began));
        if !paused.is_zero() {
            pass.kind(Kind::Eval);
        }
        waited.saturating_sub(paused)
    }

    pub(super) fn kind(&self, iteration: u64) -> Kind {
        if iteration < self.warmup { Kind::Warmup } else { Kind::Train }
    }

    pub(super) fn tokens(&self, samples: &[usize]) -> u64 {
        samples.iter().map(|&i| self.samples[i].ids.len() as u64).sum()
    }

    /// Notes something in the timeline, and tells the observer.
    pub(super) fn tell(&self, text: &str) {
        self.profiler.mark(Severity::Warning, text);
        self.observer.note(&format!("warning: {text}"));
    }

    /// Notes something in the timeline, once.
    pub(super) fn warn(&self, text: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.iter().any(|w| w == text) {
            warnings.push(text.to_owned());
            self.profiler.mark(Severity::Warning, text);
        }
    }

    /// Reports a lane's mean times every so many iterations.
    pub(super) fn report(&self, lane: &str, iteration: u64) {
        if (iteration + 1).is_multiple_of(self.log_every) {
            lane::report(self.observer, lane, iteration);
        }
    }

    /// Batches of a step for all drafters.
    pub(super) fn step_batches(&self) -> u64 {
        (self.drafters * self.accumulate) as u64
    }

    /// The drafter that a batch goes to, where that is known before it is there.
    pub(super) fn taker(&self, number: u64) -> Option<usize> {
        let drafters = self.drafters as u64;
        (self.strict || drafters == 1).then(|| (number % drafters) as usize)
    }

    /// A lane that makes hidden states has made its last: the queue closes with the last of them.
    pub(super) fn made_all(&self) {
        if self.ends.makers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.hidden_states.close();
        }
    }

    /// Ends all lanes because one has failed; the first to do so is the one that is named.
    pub(super) fn fail(&self, lane: &str, cause: &str) {
        let failure = Failure { lane: lane.to_owned(), cause: cause.to_owned() };
        self.ends.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.abandon();
    }

    /// The training is coming to its end before its time.
    pub(super) fn stop(&self) {
        self.ends.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.ends.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn abandon(&self) {
        self.stop();
        self.batches.abandon();
        self.hidden_states.abandon();
        self.posts.iter().for_each(BufferedHSQueue::abandon);
        (self.ends.also)();
    }

    /// libtorch's thread count is the calling thread's: every lane sets its own.
    pub(super) fn set_threads(&self) {
        if self.threads > 0 {
            tch::set_num_threads(i32::try_from(self.threads).unwrap_or(1));
        }
    }
}
