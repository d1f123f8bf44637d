//! Goodput: how much of the drafters' time trained, and what became of the rest. The parts add up to the whole.
//!
//! The whole is each drafter's time from the begin of its first iteration to the end of its last (of every lane where there
//! is no drafter in view). A restart shows as an iteration whose number is no greater than the one before: the iterations
//! that are done again, and the time until the new start, are lost.

use crate::stages::is_wait;
use crate::stats::add;
use crate::walk::{self, Placed, Window, end_ns};
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

/// One iteration in short.
struct Pass {
    number: u64,
    begin_ns: i64,
    end_ns: i64,
    kind: Kind,
    waited_ns: u64,
}

/// Adds up the window's iterations; `None` if there are none.
#[must_use]
pub fn goodput(timeline: &Timeline, window: &Window) -> Option<Goodput> {
    let mut lanes: BTreeMap<LaneId, Vec<Pass>> = BTreeMap::new();
    walk::for_each_pass(timeline, window, |iteration, spans| {
        lanes.entry(iteration.lane).or_default().push(pass(timeline, iteration, spans));
    });
    let drafts =
        |lane: &LaneId| timeline.lane(*lane).is_some_and(|lane| lane.name.split(':').next() == Some("drafter"));
    if lanes.keys().any(drafts) {
        lanes.retain(|lane, _| drafts(lane));
    }
    let mut sum = Goodput::default();
    let mut restarts: BTreeMap<u32, u64> = BTreeMap::new();
    for (lane, passes) in &lanes {
        let rank = timeline.lane(*lane).map_or(0, |lane| lane.rank);
        let most = restarts.entry(rank).or_default();
        *most = sum.add(passes).max(*most);
    }
    sum.restarts = restarts.values().sum();
    (!lanes.is_empty()).then_some(sum)
}

fn pass(timeline: &Timeline, iteration: &Iteration, spans: &[Placed<'_>]) -> Pass {
    let waits = |placed: &&Placed<'_>| placed.span.depth == 0 && is_wait(timeline.name(placed.span.name));
    let waited = spans.iter().filter(waits).map(|placed| placed.span.duration_ns).fold(0, u64::saturating_add);
    Pass {
        number: iteration.number,
        begin_ns: iteration.begin_ns,
        end_ns: end_ns(iteration),
        kind: iteration.kind,
        waited_ns: waited.min(iteration.duration_ns),
    }
}

impl Goodput {
    /// Adds one lane's iterations, in the order of time; returns how often it began anew.
    fn add(&mut self, passes: &[Pass]) -> u64 {
        let (mut restarts, mut again_from) = (0, u64::MAX);
        let mut later: Option<&Pass> = None;
        // Backwards: what a later attempt did again is known before it comes by.
        for pass in passes.iter().rev() {
            let restarted = later.is_some_and(|later| later.number <= pass.number);
            if let Some(later) = later {
                let between = u64::try_from(later.begin_ns.saturating_sub(pass.end_ns)).unwrap_or(0);
                add(if restarted { &mut self.lost_ns } else { &mut self.between_ns }, between);
                add(&mut self.total_ns, between);
                if restarted {
                    (restarts, again_from) = (restarts + 1, again_from.min(later.number));
                }
            }
            self.add_pass(pass, pass.number >= again_from);
            later = Some(pass);
        }
        restarts
    }

    fn add_pass(&mut self, pass: &Pass, done_again: bool) {
        let ns = pass.end_ns.abs_diff(pass.begin_ns);
        add(&mut self.total_ns, ns);
        match pass.kind {
            _ if done_again => add(&mut self.lost_ns, ns),
            Kind::Train | Kind::Bare => {
                add(&mut self.stalled_ns, pass.waited_ns);
                add(&mut self.productive_ns, ns.saturating_sub(pass.waited_ns));
            }
            Kind::Warmup => add(&mut self.warmup_ns, ns),
            Kind::Checkpoint => add(&mut self.checkpoint_ns, ns),
            Kind::Eval => add(&mut self.eval_ns, ns),
            Kind::Drain => add(&mut self.stalled_ns, ns),
        }
    }
}
