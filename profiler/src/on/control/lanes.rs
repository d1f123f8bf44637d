//! The lanes that live, seen from outside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use dflash_timeline::control::{LaneStatus, SpanAge};
use dflash_timeline::record::Kind;

use super::super::clock::Clock;
use super::super::hub::{LaneShared, lock};
use super::super::site;

/// All lanes of a profiler that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<Vec<LaneView>>);

/// One lane. It may end at any time: then only its count is left.
#[derive(Clone, Debug)]
pub(super) struct LaneView {
    name: String,
    shared: Weak<LaneShared>,
    begun: Arc<AtomicU64>,
}

impl Lanes {
    /// A lane was made.
    pub(crate) fn add(&self, shared: &Arc<LaneShared>, begun: &Arc<AtomicU64>) {
        let mut lanes = lock(&self.0);
        // A loop that makes a lane a pass must not gather them here.
        lanes.retain(|lane| lane.shared.strong_count() > 0);
        let name = shared.name.clone();
        lanes.push(LaneView { name, shared: Arc::downgrade(shared), begun: Arc::clone(begun) });
    }

    /// Names of the lanes that have not ended.
    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.0).iter().filter(|lane| !lane.has_ended()).map(|lane| lane.name().to_owned()).collect()
    }

    /// What each of them does.
    pub(super) fn status(&self, clock: &Clock) -> Vec<LaneStatus> {
        let lanes = lock(&self.0).clone();
        lanes.iter().filter_map(|lane| lane.status(clock)).collect()
    }

    /// The lane whose iterations a kernel capture counts: the first drafter by name, since a step of the training is one
    /// of its passes; without a drafter the lane that has begun most iterations.
    pub(super) fn to_count(&self) -> Option<LaneView> {
        let lanes = lock(&self.0).clone();
        let live: Vec<_> = lanes.into_iter().filter(|lane| lane.shared.strong_count() > 0).collect();
        let drafters = live.iter().filter(|lane| lane.name.starts_with("drafter")).min_by(|a, b| a.name.cmp(&b.name));
        drafters.or_else(|| live.iter().rev().max_by_key(|lane| lane.begun())).cloned()
    }
}

impl LaneView {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Iterations begun so far: the number of the next one.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// The iteration that runs.
    pub(super) fn running(&self) -> Option<(u64, Kind)> {
        self.shared.upgrade().and_then(|shared| shared.pass.look())
    }

    /// Whether its thread has left it for good.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.strong_count() == 0
    }

    /// Whether the iteration with this number has begun and ended.
    pub(super) fn has_done(&self, number: u64) -> bool {
        let begun = self.begun();
        match self.shared.upgrade() {
            // Begun goes up without an iteration being recorded while the level is off.
            Some(shared) => shared.pass.has_ended(number) || begun > number + 1,
            None => begun > number,
        }
    }

    fn status(&self, clock: &Clock) -> Option<LaneStatus> {
        let shared = self.shared.upgrade()?;
        let running = shared.pass.look();
        let now = clock.ticks();
        let age_ns = |begin| u64::try_from(clock.duration(now.saturating_sub(begin)).as_nanos()).unwrap_or(u64::MAX);
        let open = shared.open.look().into_iter();
        Some(LaneStatus {
            name: shared.name.clone(),
            device: shared.device.clone(),
            begun: self.begun(),
            iteration: running.map(|(number, _)| number),
            kind: running.map(|(_, kind)| kind),
            spans: open.map(|(id, begin)| SpanAge { name: site::name(id).to_owned(), age_ns: age_ns(begin) }).collect(),
            emitted: shared.emitted.load(Ordering::Relaxed),
            dropped: shared.dropped.load(Ordering::Relaxed),
        })
    }
}
