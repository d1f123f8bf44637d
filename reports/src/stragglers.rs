//! Stragglers: which of several lanes of one role holds the others up.
//!
//! Lanes that wait for each other take equally long, so what is compared is each lane's *own work*: an iteration without
//! what it waited (`*.wait`, `*.put`, `*.reduce`, `sync.*`), iteration by iteration, over those that every lane has. Of
//! lanes with more than 131,072 iterations every second is compared, of twice as many every fourth, and so on.

use crate::stages::ROLES;
use crate::stats::percentile;
use crate::walk::{self, Placed, Window};
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use serde::Serialize;
use std::collections::BTreeMap;

/// A straggler does at least this much more of its own work than its peers, median against median.
const WORTH_SAYING: f64 = 0.05;
/// Fewer common iterations say nothing.
const FEWEST: u64 = 10;
/// Iterations of a lane that are kept.
const MOST: usize = 1 << 17;

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
    let (mut work, words) = (Work::default(), Words::of(timeline));
    walk::for_each_pass(timeline, window, |iteration, spans| work.add(&words, iteration, spans));
    work.finish(timeline, window)
}

/// Own work of training iterations, by lane and number.
#[derive(Debug)]
pub(crate) struct Work {
    lanes: BTreeMap<LaneId, Vec<(u64, u64)>>,
    /// Only multiples of this number are kept.
    every: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), every: 1 }
    }
}

impl Work {
    /// Takes an iteration of the window.
    pub(crate) fn add(&mut self, words: &Words, iteration: &Iteration, spans: &[Placed<'_>]) {
        if iteration.kind != Kind::Train || !iteration.number.is_multiple_of(self.every) {
            return;
        }
        let own = iteration.duration_ns.saturating_sub(waited(words, spans));
        let lane = self.lanes.entry(iteration.lane).or_default();
        lane.push((iteration.number, own));
        if lane.len() > MOST {
            self.keep_every(self.every.saturating_mul(2));
        }
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, mut other: Self) {
        let every = self.every.max(other.every);
        self.keep_every(every);
        other.keep_every(every);
        self.lanes.extend(other.lanes);
    }

    #[cold]
    fn keep_every(&mut self, every: u64) {
        self.every = every;
        self.lanes.values_mut().for_each(|lane| lane.retain(|(number, _)| number.is_multiple_of(every)));
    }

    pub(crate) fn finish(mut self, timeline: &Timeline, window: &Window) -> Vec<Peer> {
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
        roles.into_values().flat_map(|lanes| compare(timeline, &lanes, &mut self)).collect()
    }

    /// A lane's own work by number; of one that was done again, the last.
    fn take(&mut self, lane: LaneId) -> Vec<(u64, u64)> {
        let mut own = self.lanes.remove(&lane).unwrap_or_default();
        own.reverse();
        own.sort_by_key(|(number, _)| *number);
        own.dedup_by_key(|(number, _)| *number);
        own
    }
}

/// The outermost spans that wait, so that none counts twice.
fn waited(words: &Words, spans: &[Placed<'_>]) -> u64 {
    let (mut sum, mut until) = (0, i64::MIN);
    for Placed { span, .. } in spans {
        let word = words.get(span.name);
        if span.begin_ns >= until && (word.waits() || word.sync || word.reduce) {
            sum = span.duration_ns.saturating_add(sum);
            until = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        }
    }
    sum
}

fn compare(timeline: &Timeline, lanes: &[LaneId], work: &mut Work) -> Vec<Peer> {
    let all: Vec<Vec<(u64, u64)>> = lanes.iter().map(|lane| work.take(*lane)).collect();
    let fewest = all.iter().min_by_key(|lane| lane.len()).cloned().unwrap_or_default();
    let mut own: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
    let mut slowest = vec![0_u64; lanes.len()];
    let of = |lane: &Vec<(u64, u64)>, wanted: u64| {
        let at = lane.binary_search_by_key(&wanted, |(number, _)| *number).ok()?;
        Some(lane[at].1)
    };
    for (number, _) in fewest {
        let row: Option<Vec<u64>> = all.iter().map(|lane| of(lane, number)).collect();
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
