//! Hand-offs from lane to lane: how old an item is when it is taken, and who waits at either end.
//!
//! An item's age is the time from the moment its producer hands it over (before it may have to wait for room) to the
//! moment its consumer takes it: waiting for room and lying in the queue together.

use crate::quick::QuickMap;
use crate::scope::Scope;
use crate::stages::StageTable;
use crate::stats::Stats;
use crate::values::Values;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Flow, FlowEnd, LaneId};
use serde::Serialize;
use std::collections::BTreeMap;

/// What went from one lane to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Handoff {
    /// Process of a multi-process run; the producer's.
    pub rank: u32,
    /// The lane that puts.
    pub from: String,
    /// The lane that takes.
    pub to: String,
    /// Ages of the items that were taken.
    pub age: Stats,
    /// Share of its time that the producer waits for room (`*.put`); `None` if it has no finished iteration.
    pub put_share: Option<f64>,
    /// Share of its time that the consumer waits for input (`*.wait`).
    pub wait_share: Option<f64>,
}

/// Hand-offs, and ends of hand-offs that found no other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Handoffs {
    /// By rank and in the order of the lanes.
    pub pairs: Vec<Handoff>,
    /// Items put and not (yet) taken: in a queue when the recording ended, or thrown away.
    pub never_taken: u64,
    /// Items taken whose putting is not recorded.
    pub never_put: u64,
}

/// Joins both ends of every hand-off that was taken in the window.
#[must_use]
pub fn handoffs(timeline: &Timeline, window: &Window, stages: &StageTable) -> Handoffs {
    let (mut scope, mut joined) = (Scope::new(window), Joined::default());
    scope.texts(timeline);
    for flow in &timeline.flows {
        joined.add(timeline.lane(flow.lane).map_or(0, |lane| lane.rank), &scope, flow);
    }
    joined.finish(timeline, &scope, stages)
}

/// Hand-offs so far; what was put and not taken waits here.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    under_way: QuickMap<(u32, u64), (LaneId, i64)>,
    ages: BTreeMap<(u32, LaneId, LaneId), Values>,
    never_taken: u64,
    never_put: u64,
}

impl Joined {
    /// Takes one end; they come in the order of time.
    pub(crate) fn add(&mut self, rank: u32, scope: &Scope, flow: &Flow) {
        let key = (rank, flow.id);
        if flow.end == FlowEnd::Put {
            // A number comes again after a restart: what it meant before was thrown away.
            let old = self.under_way.insert(key, (flow.lane, flow.time_ns));
            self.never_taken += u64::from(old.is_some_and(|(_, at)| scope.has_time(at)));
            return;
        }
        let put = self.under_way.remove(&key);
        if !scope.has_time(flow.time_ns) {
            return;
        }
        match put {
            Some((from, at)) if scope.has_lane(from) || scope.has_lane(flow.lane) => {
                let age = u64::try_from(flow.time_ns.saturating_sub(at)).unwrap_or(0);
                self.ages.entry((rank, from, flow.lane)).or_default().push(age);
            }
            Some(_) => {}
            None => self.never_put += u64::from(scope.has_lane(flow.lane)),
        }
    }

    pub(crate) fn finish(self, timeline: &Timeline, scope: &Scope, stages: &StageTable) -> Handoffs {
        let left = self.under_way.values().filter(|(lane, at)| scope.has_time(*at) && scope.has_lane(*lane));
        let (never_taken, never_put) = (self.never_taken + left.count() as u64, self.never_put);
        let ages = self.ages.into_iter();
        let pairs = ages.map(|((rank, from, to), mut ages)| pair(timeline, stages, rank, (from, to), ages.stats()));
        Handoffs { pairs: pairs.collect(), never_taken, never_put }
    }
}

fn pair(timeline: &Timeline, stages: &StageTable, rank: u32, (from, to): (LaneId, LaneId), age: Stats) -> Handoff {
    let name = |lane| timeline.lane(lane).map_or_else(|| "?".to_owned(), |lane| lane.name.clone());
    let (from, to) = (name(from), name(to));
    let share = |lane: &str, suffix| {
        let table = stages.lanes.iter().find(|table| table.rank == rank && table.lane == lane);
        table.filter(|table| table.iterations > 0).map(|table| table.share_of(suffix))
    };
    let (put_share, wait_share) = (share(&from, ".put"), share(&to, ".wait"));
    Handoff { rank, from, to, age, put_share, wait_share }
}
