//! Hand-offs from lane to lane: how old an item is when it is taken, and who waits at either end.
//!
//! An item's age is the time from the moment its producer hands it over (before it may have to wait for room) to the
//! moment its consumer takes it: waiting for room and lying in the queue together.

use crate::stages::StageTable;
use crate::stats::Stats;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{FlowEnd, LaneId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

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
    let rank = |lane: LaneId| timeline.lane(lane).map_or(0, |lane| lane.rank);
    let mut under_way: HashMap<(u32, u64), (LaneId, i64)> = HashMap::new();
    let mut ages: BTreeMap<(u32, LaneId, LaneId), Vec<u64>> = BTreeMap::new();
    let mut found = Handoffs::default();
    for flow in &timeline.flows {
        let key = (rank(flow.lane), flow.id);
        if flow.end == FlowEnd::Put {
            // A number comes again after a restart: what it meant before was thrown away.
            let old = under_way.insert(key, (flow.lane, flow.time_ns));
            found.never_taken += u64::from(old.is_some_and(|(_, at)| window.has_time(at)));
            continue;
        }
        let put = under_way.remove(&key);
        if !window.has_time(flow.time_ns) {
            continue;
        }
        match put {
            Some((from, at)) if window.has_lane(timeline, from) || window.has_lane(timeline, flow.lane) => {
                let age = u64::try_from(flow.time_ns.saturating_sub(at)).unwrap_or(0);
                ages.entry((key.0, from, flow.lane)).or_default().push(age);
            }
            Some(_) => {}
            None => found.never_put += u64::from(window.has_lane(timeline, flow.lane)),
        }
    }
    let left = under_way.values().filter(|(lane, at)| window.has_time(*at) && window.has_lane(timeline, *lane));
    found.never_taken += left.count() as u64;
    let pairs =
        ages.into_iter().map(|((rank, from, to), mut ages)| pair(timeline, stages, rank, (from, to), &mut ages));
    found.pairs = pairs.collect();
    found
}

fn pair(
    timeline: &Timeline,
    stages: &StageTable,
    rank: u32,
    (from, to): (LaneId, LaneId),
    ages: &mut [u64],
) -> Handoff {
    let name = |lane| timeline.lane(lane).map_or_else(|| "?".to_owned(), |lane| lane.name.clone());
    let (from, to) = (name(from), name(to));
    let share = |lane: &str, suffix| {
        let table = stages.lanes.iter().find(|table| table.rank == rank && table.lane == lane);
        table.filter(|table| table.iterations > 0).map(|table| table.share_of(suffix))
    };
    let (put_share, wait_share) = (share(&from, ".put"), share(&to, ".wait"));
    Handoff { rank, from, to, age: Stats::of(ages), put_share, wait_share }
}
