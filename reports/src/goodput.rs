//! Goodput: how much of the drafters' time trained, and what became of the rest. The parts add up to the whole.
//!
//! The whole is each drafter's time from the begin of its first iteration to the end of its last (of every lane where there
//! is no drafter in view). A restart shows as an iteration whose number is no greater than the one before: the iterations
//! that are done again, and the time until the new start, are lost.

use crate::stats::add;
use crate::survey::{LaneSurvey, Survey};
use crate::walk::{self, Placed, Window, end_ns};
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where the time went; nanoseconds, of all drafters together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Goodput {
    /// All of it; the parts below add up to it.
    pub total_ns: u64,
    /// Training: iterations without what they waited.
    pub productive_ns: u64,
    /// Iterations that warmed up.
    pub warmup_ns: u64,
    /// Iterations that wrote a checkpoint.
    pub checkpoint_ns: u64,
    /// Iterations that evaluated.
    pub eval_ns: u64,
    /// Waiting for input or for room (`*.wait`, `*.put`), and iterations that only learnt that no more comes.
    pub stalled_ns: u64,
    /// Iterations that a restart had to do again, and the time without an attempt.
    pub lost_ns: u64,
    /// Between iterations.
    pub between_ns: u64,
    /// Starts after the first, counted once per rank.
    pub restarts: u64,
}

impl Goodput {
    /// The parts with their names, in order.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("productive", self.productive_ns),
            ("warm-up", self.warmup_ns),
            ("checkpoint", self.checkpoint_ns),
            ("eval", self.eval_ns),
            ("stalled", self.stalled_ns),
            ("lost to a restart", self.lost_ns),
            ("between iterations", self.between_ns),
        ]
    }
}

/// Adds up the window's iterations; `None` if there are none.
#[must_use]
pub fn goodput(timeline: &Timeline, window: &Window) -> Option<Goodput> {
    let (survey, words) = (Survey::of_iterations(timeline, window), Words::of(timeline));
    let mut gathered = Gathered::default();
    walk::for_each_pass(timeline, window, |iteration, spans| gathered.add(&survey, &words, iteration, spans));
    gathered.finish(timeline)
}

/// All lanes, iteration by iteration.
#[derive(Debug, Default)]
pub(crate) struct Gathered(BTreeMap<LaneId, Lane>);

/// One lane so far.
#[derive(Debug, Default)]
struct Lane {
    sum: Goodput,
    /// Number and end of the last iteration.
    last: Option<(u64, i64)>,
    restarts: usize,
    /// Of each restart, the least number that it or a later one began with: what was before has been done again from it on.
    again_from: Vec<u64>,
}

impl Gathered {
    /// Takes an iteration of the window.
    pub(crate) fn add(&mut self, survey: &Survey, words: &Words, iteration: &Iteration, spans: &[Placed<'_>]) {
        let lane = self.0.entry(iteration.lane);
        let lane = lane.or_insert_with(|| Lane::new(survey.lane(iteration.lane)));
        let waits = |placed: &&Placed<'_>| placed.span.depth == 0 && words.get(placed.span.name).waits();
        let waited = spans.iter().filter(waits).map(|placed| placed.span.duration_ns).fold(0, u64::saturating_add);
        lane.add(iteration, waited.min(iteration.duration_ns));
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn finish(self, timeline: &Timeline) -> Option<Goodput> {
        let mut lanes = self.0;
        let drafts =
            |lane: &LaneId| timeline.lane(*lane).is_some_and(|lane| lane.name.split(':').next() == Some("drafter"));
        if lanes.keys().any(drafts) {
            lanes.retain(|lane, _| drafts(lane));
        }
        let mut sum = Goodput::default();
        let mut restarts: BTreeMap<u32, u64> = BTreeMap::new();
        for (id, lane) in &lanes {
            let rank = timeline.lane(*id).map_or(0, |lane| lane.rank);
            let most = restarts.entry(rank).or_default();
            *most = (lane.restarts as u64).max(*most);
            sum.join(&lane.sum);
        }
        sum.restarts = restarts.values().sum();
        (!lanes.is_empty()).then_some(sum)
    }
}

impl Lane {
    fn new(survey: Option<&LaneSurvey>) -> Self {
        let mut again_from = survey.map_or_else(Vec::new, |survey| survey.restarts.clone());
        let mut least = u64::MAX;
        for number in again_from.iter_mut().rev() {
            least = least.min(*number);
            *number = least;
        }
        Self { again_from, ..Self::default() }
    }

    /// Adds an iteration, which comes after those before it in time.
    fn add(&mut self, iteration: &Iteration, waited_ns: u64) {
        if let Some((number, end)) = self.last {
            let restarted = iteration.number <= number;
            let between = u64::try_from(iteration.begin_ns.saturating_sub(end)).unwrap_or(0);
            add(if restarted { &mut self.sum.lost_ns } else { &mut self.sum.between_ns }, between);
            add(&mut self.sum.total_ns, between);
            self.restarts += usize::from(restarted);
        }
        let done_again = self.again_from.get(self.restarts).is_some_and(|from| iteration.number >= *from);
        self.sum.add_pass(iteration, waited_ns, done_again);
        self.last = Some((iteration.number, end_ns(iteration)));
    }
}

impl Goodput {
    fn add_pass(&mut self, iteration: &Iteration, waited_ns: u64, done_again: bool) {
        let ns = end_ns(iteration).abs_diff(iteration.begin_ns);
        add(&mut self.total_ns, ns);
        match iteration.kind {
            _ if done_again => add(&mut self.lost_ns, ns),
            Kind::Train | Kind::Bare => {
                add(&mut self.stalled_ns, waited_ns);
                add(&mut self.productive_ns, ns.saturating_sub(waited_ns));
            }
            Kind::Warmup => add(&mut self.warmup_ns, ns),
            Kind::Checkpoint => add(&mut self.checkpoint_ns, ns),
            Kind::Eval => add(&mut self.eval_ns, ns),
            Kind::Drain => add(&mut self.stalled_ns, ns),
        }
    }

    fn join(&mut self, other: &Self) {
        add(&mut self.total_ns, other.total_ns);
        add(&mut self.productive_ns, other.productive_ns);
        add(&mut self.warmup_ns, other.warmup_ns);
        add(&mut self.checkpoint_ns, other.checkpoint_ns);
        add(&mut self.eval_ns, other.eval_ns);
        add(&mut self.stalled_ns, other.stalled_ns);
        add(&mut self.lost_ns, other.lost_ns);
        add(&mut self.between_ns, other.between_ns);
    }
}
