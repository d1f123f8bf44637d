//! The caching allocator: what it asked of the device, and in which stage.
//!
//! Read from counters `allocator.<device>.<what>[.<stage>]`. Of `device_allocations`, `device_frees`, `retries` and
//! `out_of_memory` each sample is the number that moved at that time, charged to the stage; `allocations` is the number
//! of one iteration, `reserved` and `active` are bytes.

use crate::counters::{Range, Reading, Readings};
use crate::passes::Take;
use crate::stats::add;
use crate::survey::Survey;
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::Counter;
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
    let mut survey = Survey::of_counters(timeline, window);
    timeline.iterations.iter().for_each(|iteration| survey.iteration(iteration));
    rows(timeline, &Readings::of(timeline, window, &survey), &survey)
}

pub(crate) fn rows(timeline: &Timeline, readings: &Readings, survey: &Survey) -> Vec<Allocator> {
    let mut found: BTreeMap<(u32, &str), Gathered<'_>> = BTreeMap::new();
    for (counter, (device, what, stage), reading) in readings.wanted(timeline, parse) {
        found.entry((counter.rank, device)).or_default().add(what, stage, reading);
    }
    let rows = found.into_iter().map(|((rank, device), gathered)| Allocator {
        device: device.to_owned(),
        rank,
        late_device_allocations: survey.steady_from(timeline, rank, device).map(|_| gathered.late),
        stages: gathered.stages.into_values().collect(),
        ..gathered.totals
    });
    rows.collect()
}

/// From when on what a counter of device allocations says is late, if it is one.
pub(crate) fn late_from(timeline: &Timeline, survey: &Survey, counter: &Counter) -> Option<i64> {
    let (device, _, _) = parse(counter).filter(|(_, what, _)| *what == "device_allocations")?;
    survey.steady_from(timeline, counter.rank, device)
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
    late: u64,
    totals: Allocator,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, what: &str, stage: Option<&'a str>, reading: &Reading) {
        let range = Some(reading.range);
        match what {
            "reserved" => self.totals.reserved = range,
            "active" => self.totals.active = range,
            "allocations" => self.totals.allocations = range,
            "device_allocations" => {
                add(&mut self.moves(stage).device_allocations, reading.moved);
                add(&mut self.late, reading.late);
            }
            "device_frees" => add(&mut self.moves(stage).device_frees, reading.moved),
            "retries" => add(&mut self.moves(stage).retries, reading.moved),
            "out_of_memory" => add(&mut self.moves(stage).out_of_memory, reading.moved),
            _ => {}
        }
    }

    fn moves(&mut self, stage: Option<&'a str>) -> &mut StageMoves {
        let new = || StageMoves { stage: stage.map(str::to_owned), ..StageMoves::default() };
        self.stages.entry(stage).or_insert_with(new)
    }
}
