//! The caching allocator: what it asked of the device, and in which stage.
//!
//! Read from counters `allocator.<device>.<what>[.<stage>]`. Of `device_allocations`, `device_frees`, `retries` and
//! `out_of_memory` each sample is the number that moved at that time, charged to the stage; `allocations` is the number
//! of one iteration, `reserved` and `active` are bytes.

use crate::counters::{Range, series};
use crate::stats::{add, sum};
use crate::walk::{self, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Counter, Iteration, LaneId, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// The iteration after which a steady training asks the device for no more memory.
pub const STEADY_AFTER: u64 = 20;

/// One device's allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Allocator {
    /// `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// By stage, sorted; what moved in no stage stands first, under no name.
    pub stages: Vec<StageMoves>,
    /// Device allocations after the end of iteration 20 of the device's lanes; `None` until they have all done it.
    pub late_device_allocations: Option<u64>,
    /// Bytes taken from the device.
    pub reserved: Option<Range>,
    /// Bytes handed out.
    pub active: Option<Range>,
    /// Blocks handed out by iteration.
    pub allocations: Option<Range>,
}

/// What moved in one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageMoves {
    /// The stage; `None` outside of all.
    pub stage: Option<String>,
    /// Calls to the device's own allocator, which may synchronise.
    pub device_allocations: u64,
    /// Calls to the device's own free, which synchronise.
    pub device_frees: u64,
    /// Times when the cache was emptied to make room.
    pub retries: u64,
    /// Requests that failed.
    pub out_of_memory: u64,
}

/// The allocators of all devices, by rank and device. Empty if none was read.
#[must_use]
pub fn allocators(timeline: &Timeline, window: &Window) -> Vec<Allocator> {
    let mut found: BTreeMap<(u32, &str), Gathered> = BTreeMap::new();
    for (counter, (device, what, stage), samples) in series(timeline, window, parse) {
        found.entry((counter.rank, device)).or_default().add(what, stage, &samples);
    }
    let rows = found.into_iter().map(|((rank, device), gathered)| {
        let steady = steady_from(timeline, rank, device);
        let late = |from| {
            gathered.device_allocations.iter().filter(|s| s.time_ns > from).map(count).fold(0, u64::saturating_add)
        };
        Allocator {
            device: device.to_owned(),
            rank,
            late_device_allocations: steady.map(late),
            stages: gathered.stages.into_values().collect(),
            ..gathered.totals
        }
    });
    rows.collect()
}

/// The sum over all devices; `None` unless it is known of each.
#[must_use]
pub fn late_device_allocations(allocators: &[Allocator]) -> Option<u64> {
    let known = allocators.iter().map(|a| a.late_device_allocations).collect::<Option<Vec<u64>>>()?;
    (!known.is_empty()).then(|| known.iter().copied().fold(0, u64::saturating_add))
}

fn parse(counter: &Counter) -> Option<(&str, &str, Option<&str>)> {
    let (device, rest) = counter.name.strip_prefix("allocator.")?.split_once('.')?;
    Some(match rest.split_once('.') {
        Some((what, stage)) => (device, what, Some(stage)),
        None => (device, rest, None),
    })
}

/// What has been read of one device.
#[derive(Default)]
struct Gathered<'a> {
    stages: BTreeMap<Option<&'a str>, StageMoves>,
    device_allocations: Vec<Sample>,
    totals: Allocator,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, what: &str, stage: Option<&'a str>, samples: &[Sample]) {
        let range = Range::of(samples);
        match what {
            "reserved" => self.totals.reserved = range,
            "active" => self.totals.active = range,
            "allocations" => self.totals.allocations = range,
            "device_allocations" => {
                add(&mut self.moves(stage).device_allocations, sum(samples.iter().map(count)));
                self.device_allocations.extend_from_slice(samples);
            }
            "device_frees" => add(&mut self.moves(stage).device_frees, sum(samples.iter().map(count))),
            "retries" => add(&mut self.moves(stage).retries, sum(samples.iter().map(count))),
            "out_of_memory" => add(&mut self.moves(stage).out_of_memory, sum(samples.iter().map(count))),
            _ => {}
        }
    }

    fn moves(&mut self, stage: Option<&'a str>) -> &mut StageMoves {
        let new = || StageMoves { stage: stage.map(str::to_owned), ..StageMoves::default() };
        self.stages.entry(stage).or_insert_with(new)
    }
}

fn count(sample: &Sample) -> u64 {
    sample.value.max(0.0).round() as u64
}

/// When the last of a device's lanes had done iteration 20; `None` if there is no lane, or one has not.
fn steady_from(timeline: &Timeline, rank: u32, device: &str) -> Option<i64> {
    let lanes = (0..).map(LaneId).zip(&timeline.lanes);
    let ends = lanes.filter(|(_, lane)| lane.device == device && lane.rank == rank).map(|(id, _)| {
        let later = |i: &&Iteration| i.lane == id && i.number >= STEADY_AFTER;
        let first = timeline.iterations.iter().find(later)?;
        // Where the record of that very iteration is lost, the next one's begin is as near as one gets.
        Some(if first.number == STEADY_AFTER { walk::end_ns(first) } else { first.begin_ns })
    });
    ends.collect::<Option<Vec<i64>>>()?.into_iter().max()
}
