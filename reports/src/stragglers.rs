//! Stragglers: which of several lanes of one role holds the others up.
//!
//! Lanes that wait for each other take equally long, so what is compared is each lane's *own work*: an iteration without
//! what it waited (`*.wait`, `*.put`, `*.reduce`, `sync.*`), iteration by iteration, over those that every lane has.

use crate::stages::{ROLES, is_sync, is_wait};
use crate::stats::percentile;
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Kind, LaneId};
use serde::Serialize;
use std::collections::BTreeMap;

/// A straggler does at least this much more of its own work than its peers, median against median.
const WORTH_SAYING: f64 = 0.05;
/// Fewer common iterations say nothing.
const FEWEST: u64 = 10;

/// One lane among its peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Its device.
    pub device: String,
    /// Iterations that all its peers have, too.
    pub iterations: u64,
    /// Median of its own work, nanoseconds.
    pub own_p50_ns: u64,
    /// Own work ÷ the median of its peers' medians, less 1.
    pub excess: f64,
    /// Common iterations in which it had the most work.
    pub slowest: u64,
    /// Whether it holds the others up: clearly more work, and the slowest in most iterations.
    pub straggler: bool,
}

/// Every lane that has peers, by role, rank and number. Empty where each role has one lane.
#[must_use]
pub fn peers(timeline: &Timeline, window: &Window) -> Vec<Peer> {
    let mut roles: BTreeMap<(usize, &str), Vec<LaneId>> = BTreeMap::new();
    let mut lanes: Vec<LaneId> = (0..timeline.lanes.len()).map(|at| LaneId(at as u32)).collect();
    lanes.retain(|lane| window.has_lane(timeline, *lane));
    lanes.sort_by_key(|lane| timeline.lane(*lane).map(|lane| (lane.rank, lane.name.clone())));
    for lane in lanes {
        let role = timeline.lane(lane).and_then(|lane| lane.name.split(':').next()).unwrap_or_default();
        let place = ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len());
        roles.entry((place, role)).or_default().push(lane);
    }
    roles.retain(|_, lanes| lanes.len() > 1);
    if roles.is_empty() {
        return Vec::new();
    }
    let mut work = own_work(timeline, window);
    roles.into_values().flat_map(|lanes| compare(timeline, &lanes, &mut work)).collect()
}

/// Own work of each training iteration, by lane and number.
fn own_work(timeline: &Timeline, window: &Window) -> BTreeMap<LaneId, BTreeMap<u64, u64>> {
    let mut work: BTreeMap<LaneId, BTreeMap<u64, u64>> = BTreeMap::new();
    walk::for_each_pass(timeline, window, |iteration, spans| {
        if iteration.kind == Kind::Train {
            let waited = waited(timeline, spans);
            let own = iteration.duration_ns.saturating_sub(waited);
            work.entry(iteration.lane).or_default().insert(iteration.number, own);
        }
    });
    work
}

/// The outermost spans that wait, so that none counts twice.
fn waited(timeline: &Timeline, spans: &[Placed<'_>]) -> u64 {
    let (mut sum, mut until) = (0, i64::MIN);
    for Placed { span, .. } in spans {
        let name = timeline.name(span.name);
        if span.begin_ns >= until && (is_wait(name) || is_sync(name) || name.ends_with(".reduce")) {
            sum = span.duration_ns.saturating_add(sum);
            until = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        }
    }
    sum
}

fn compare(timeline: &Timeline, lanes: &[LaneId], work: &mut BTreeMap<LaneId, BTreeMap<u64, u64>>) -> Vec<Peer> {
    let all: Vec<BTreeMap<u64, u64>> = lanes.iter().map(|lane| work.remove(lane).unwrap_or_default()).collect();
    let fewest = all.iter().min_by_key(|lane| lane.len()).cloned().unwrap_or_default();
    let mut own: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
    let mut slowest = vec![0_u64; lanes.len()];
    for number in fewest.keys() {
        let row: Option<Vec<u64>> = all.iter().map(|lane| lane.get(number).copied()).collect();
        let Some(row) = row else { continue };
        let most = row.iter().max().copied().unwrap_or(0);
        let mut those = row.iter().zip(&mut slowest).filter(|(ns, _)| **ns == most);
        // Of two that are alike neither is the slowest.
        if let (Some((_, slowest)), None) = (those.next(), those.next()) {
            *slowest += 1;
        }
        own.iter_mut().zip(row).for_each(|(list, ns)| list.push(ns));
    }
    let medians: Vec<u64> = own.iter_mut().map(|list| median(list)).collect();
    let common = own.first().map_or(0, Vec::len) as u64;
    let peer = |(at, lane): (usize, &LaneId)| {
        let mut others: Vec<u64> = medians.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, ns)| *ns).collect();
        let others = median(&mut others);
        let excess = if others > 0 { medians[at] as f64 / others as f64 - 1.0 } else { 0.0 };
        let who = timeline.lane(*lane)?;
        Some(Peer {
            lane: who.name.clone(),
            rank: who.rank,
            device: who.device.clone(),
            iterations: common,
            own_p50_ns: medians[at],
            excess,
            slowest: slowest[at],
            straggler: common >= FEWEST && excess > WORTH_SAYING && slowest[at] * 2 > common,
        })
    };
    lanes.iter().enumerate().filter_map(peer).collect()
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    percentile(values, 50).unwrap_or(0)
}
