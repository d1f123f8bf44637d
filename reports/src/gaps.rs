//! Device gaps: time between one device span's end and the next one's begin, and what the lane's host did meanwhile.
//!
//! A lane's stages with a device time are taken as one stream. Only gaps within and between neighbouring iterations of
//! kind `train` count, and only where no stage stands between that has a device time elsewhere but none here (sampled, or
//! never resolved): such places are counted, not guessed. A gap is not idle time: what runs on other streams, or without
//! a span, is not seen. Only a kernel capture tells.

use crate::intervals::Union;
use crate::stages::is_sync;
use crate::stats::{add, sum};
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, NameId, Span};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The gaps of one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneGaps {
    /// The lane.
    pub lane: String,
    /// Its device.
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Gaps.
    pub gaps: u64,
    /// Their length together, nanoseconds. The four parts below add up to it.
    pub total_ns: u64,
    /// Of that, while the host waited for input (`*.wait`).
    pub input_ns: u64,
    /// Of that, while the host waited for room (`*.put`).
    pub room_ns: u64,
    /// Of that, while the host waited for the device (`sync.*`).
    pub sync_ns: u64,
    /// The rest: the host was at work, and the device waited for its launches.
    pub launch_ns: u64,
    /// Device time of the stages between which they lie.
    pub device_ns: u64,
    /// Places where a device time is missing, so that no gap is known.
    pub unknown: u64,
}

/// The gaps of every lane that has device times, in the order of the lanes.
#[must_use]
pub fn gaps(timeline: &Timeline, window: &Window) -> Vec<LaneGaps> {
    let timed: BTreeSet<(LaneId, NameId)> =
        timeline.spans.iter().filter(|s| s.depth == 0 && s.device.is_some()).map(|s| (s.lane, s.name)).collect();
    let mut lanes: BTreeMap<LaneId, Walker> = BTreeMap::new();
    if timed.is_empty() {
        return Vec::new();
    }
    walk::for_each_pass(timeline, window, |iteration, spans| {
        if timed.range((iteration.lane, NameId(0))..=(iteration.lane, NameId(u32::MAX))).next().is_some() {
            lanes.entry(iteration.lane).or_default().add(timeline, &timed, iteration, spans);
        }
    });
    lanes.into_iter().filter_map(|(id, walker)| walker.finish(timeline, id)).collect()
}

/// What the host waited for.
#[derive(Default)]
struct Waits {
    input: Vec<(i64, i64)>,
    room: Vec<(i64, i64)>,
    sync: Vec<(i64, i64)>,
    /// End of the last of them: what is nested in a wait is part of it.
    until: i64,
}

impl Waits {
    fn add(&mut self, timeline: &Timeline, span: &Span) {
        let name = timeline.name(span.name);
        let list = match name {
            _ if is_sync(name) => &mut self.sync,
            _ if name.ends_with(".wait") => &mut self.input,
            _ if name.ends_with(".put") => &mut self.room,
            _ => return,
        };
        let end = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        list.push((span.begin_ns.max(self.until), end));
        self.until = self.until.max(end);
    }
}

/// Goes along one lane.
struct Walker {
    waits: Waits,
    gaps: Vec<(i64, i64)>,
    /// End of the last device span; `None` where the chain is broken.
    last_end: Option<i64>,
    next: Option<u64>,
    found: LaneGaps,
}

impl Default for Walker {
    fn default() -> Self {
        let waits = Waits { until: i64::MIN, ..Waits::default() };
        Self { waits, gaps: Vec::new(), last_end: None, next: None, found: LaneGaps::default() }
    }
}

impl Walker {
    fn add(
        &mut self,
        timeline: &Timeline,
        timed: &BTreeSet<(LaneId, NameId)>,
        iteration: &Iteration,
        spans: &[Placed<'_>],
    ) {
        if iteration.kind != Kind::Train || self.next != Some(iteration.number) {
            self.last_end = None;
        }
        self.next = (iteration.kind == Kind::Train).then(|| iteration.number + 1);
        if iteration.kind != Kind::Train {
            return;
        }
        for Placed { span, .. } in spans {
            self.waits.add(timeline, span);
            match span.device {
                Some(device) if span.depth == 0 => {
                    let end = device.begin_ns.saturating_add_unsigned(device.duration_ns);
                    self.gaps
                        .extend(self.last_end.filter(|last| *last < device.begin_ns).map(|l| (l, device.begin_ns)));
                    self.last_end = Some(self.last_end.map_or(end, |last| last.max(end)));
                    add(&mut self.found.device_ns, device.duration_ns);
                }
                None if span.depth == 0 && timed.contains(&(span.lane, span.name)) => {
                    self.last_end = None;
                    self.found.unknown += 1;
                }
                _ => {}
            }
        }
    }

    fn finish(self, timeline: &Timeline, id: LaneId) -> Option<LaneGaps> {
        let lane = timeline.lane(id)?;
        let mut found = LaneGaps {
            lane: lane.name.clone(),
            device: lane.device.clone(),
            rank: lane.rank,
            gaps: self.gaps.len() as u64,
            ..self.found
        };
        let Waits { input, room, sync, .. } = self.waits;
        let (input, room, sync) = (Union::of(input), Union::of(room), Union::of(sync));
        for gap in self.gaps {
            let length = gap.1.abs_diff(gap.0);
            let parts = [input.covered(gap), room.covered(gap), sync.covered(gap)];
            add(&mut found.total_ns, length);
            add(&mut found.input_ns, parts[0]);
            add(&mut found.room_ns, parts[1]);
            add(&mut found.sync_ns, parts[2]);
            add(&mut found.launch_ns, length.saturating_sub(sum(parts.into_iter())));
        }
        Some(found)
    }
}
