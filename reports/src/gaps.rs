//! Device gaps: time between one device span's end and the next one's begin, and what the lane's host did meanwhile.
//!
//! Each stream that a lane's stages have device times on is looked at for itself; of recordings that do not say which it
//! was, all of them are taken as one. Only gaps within and between neighbouring iterations of
//! kind `train` count, and only where no stage stands between that has a device time elsewhere but none here (sampled, or
//! never resolved): such places are counted, not guessed. A gap is not idle time: what runs on other streams, or without
//! a span, is not seen. Only a kernel capture tells.

mod timed;
mod waits;

use crate::intervals::{Along, Union};
use crate::walk::{self, Placed, Window};
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, StreamId};
use serde::Serialize;
use std::collections::BTreeMap;
pub(crate) use timed::Timed;
use waits::Waits;

/// The gaps of one lane, on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneGaps {
    /// The lane.
    pub lane: String,
    /// The stream's device, which is nearly always the lane's.
    pub device: String,
    /// The stream's number, where the lane uses several; else `None`.
    pub stream: Option<i64>,
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

/// The gaps of every lane that has device times, in the order of the lanes, and of each of its streams.
#[must_use]
pub fn gaps(timeline: &Timeline, window: &Window) -> Vec<LaneGaps> {
    let mut timed = Timed::default();
    timeline.spans.iter().for_each(|span| timed.learn(span));
    if timed.is_empty() {
        return Vec::new();
    }
    let (mut gathered, words) = (Gathered::default(), Words::of(timeline));
    walk::for_each_pass(timeline, window, |iteration, spans| gathered.add(&words, &timed, iteration, spans));
    gathered.finish(timeline)
}

/// The gaps of all lanes, iteration by iteration.
#[derive(Default)]
pub(crate) struct Gathered(BTreeMap<LaneId, Walkers>);

/// Those of a lane, by stream.
#[derive(Default)]
pub(crate) struct Walkers(BTreeMap<Option<StreamId>, Walker>);

impl Gathered {
    pub(crate) fn add(&mut self, words: &Words, timed: &Timed, iteration: &Iteration, spans: &[Placed<'_>]) {
        if !timed.streams(iteration.lane).is_empty() {
            self.0.entry(iteration.lane).or_default().add(words, timed, iteration, spans);
        }
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn finish(self, timeline: &Timeline) -> Vec<LaneGaps> {
        self.0.into_iter().flat_map(|(id, walkers)| walkers.finish(timeline, id)).map(|(_, found)| found).collect()
    }
}

impl Walkers {
    /// Goes on by one iteration.
    pub(crate) fn add(&mut self, words: &Words, timed: &Timed, iteration: &Iteration, spans: &[Placed<'_>]) {
        for stream in timed.streams(iteration.lane) {
            self.0.entry(*stream).or_default().add((words, timed, *stream), iteration, spans);
        }
    }

    /// The gaps of each stream on which something was found, by number; where nothing was, of one.
    pub(crate) fn finish(self, timeline: &Timeline, id: LaneId) -> Vec<(Option<StreamId>, LaneGaps)> {
        let Some(lane) = timeline.lane(id) else { return Vec::new() };
        let of_stream = |(id, walker): (Option<StreamId>, Walker)| {
            let stream = id.and_then(|id| timeline.stream(id));
            let device = stream.map_or(&lane.device, |stream| &stream.device).clone();
            let stream = stream.map(|stream| stream.number);
            (id, LaneGaps { lane: lane.name.clone(), device, stream, rank: lane.rank, ..walker.finish() })
        };
        let mut found: Vec<_> = self.0.into_iter().map(of_stream).collect();
        found.sort_by(|(_, a), (_, b)| (a.stream, &a.device).cmp(&(b.stream, &b.device)));
        let something = |gaps: &LaneGaps| gaps.device_ns > 0 || gaps.gaps > 0 || gaps.unknown > 0;
        if found.iter().any(|(_, gaps)| something(gaps)) {
            found.retain(|(_, gaps)| something(gaps));
        } else {
            found.truncate(1);
        }
        if let [(_, gaps)] = found.as_mut_slice() {
            // Of one stream nobody needs the number.
            gaps.stream = None;
        }
        found
    }
}

/// Gaps and waits after which a walker accounts for those that it can: it must not grow with the run.
const MANY: usize = 4096;

/// Goes along one stream of a lane.
#[derive(Default)]
struct Walker {
    waits: Waits,
    gaps: Vec<(i64, i64)>,
    /// End of the last device span; `None` where the chain is broken.
    last_end: Option<i64>,
    next: Option<u64>,
    found: LaneGaps,
}

impl Walker {
    /// Goes on by one iteration.
    fn add(
        &mut self,
        (words, timed, stream): (&Words, &Timed, Option<StreamId>),
        iteration: &Iteration,
        spans: &[Placed<'_>],
    ) {
        if iteration.kind != Kind::Train || self.next != Some(iteration.number) {
            self.last_end = None;
        }
        self.next = (iteration.kind == Kind::Train).then(|| iteration.number + 1);
        if self.gaps.len() + self.waits.len() > MANY {
            self.settle(iteration.begin_ns);
        }
        if iteration.kind != Kind::Train {
            return;
        }
        for Placed { span, .. } in spans {
            self.waits.add(words, span);
            match span.device {
                Some(device) if span.depth == 0 && device.stream == stream => {
                    let end = device.begin_ns.saturating_add_unsigned(device.duration_ns);
                    self.gaps
                        .extend(self.last_end.filter(|last| *last < device.begin_ns).map(|l| (l, device.begin_ns)));
                    self.last_end = Some(self.last_end.map_or(end, |last| last.max(end)));
                    self.found.device_ns = self.found.device_ns.saturating_add(device.duration_ns);
                }
                None if span.depth == 0 && timed.has_on(span, stream) => {
                    self.last_end = None;
                    self.found.unknown += 1;
                }
                _ => {}
            }
        }
    }

    /// Accounts for the gaps that ended by `until`: each wait that began before it is known by then.
    fn settle(&mut self, until: i64) {
        let (ended, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.gaps).into_iter().partition(|gap| gap.1 <= until);
        let of = |list: &[(i64, i64)]| Union::of(list.to_vec());
        let (input, room, sync) = (of(&self.waits.input), of(&self.waits.room), of(&self.waits.sync));
        let (mut input, mut room, mut sync) = (Along::new(&input), Along::new(&room), Along::new(&sync));
        let found = &mut self.found;
        for gap in ended {
            let length = gap.1.abs_diff(gap.0);
            let parts = [input.covered(gap), room.covered(gap), sync.covered(gap)];
            found.gaps += 1;
            found.total_ns = found.total_ns.saturating_add(length);
            found.input_ns = found.input_ns.saturating_add(parts[0]);
            found.room_ns = found.room_ns.saturating_add(parts[1]);
            found.sync_ns = found.sync_ns.saturating_add(parts[2]);
            found.launch_ns = found.launch_ns.saturating_add(length.saturating_sub(parts.iter().sum()));
        }
        // The next gap begins where the last device span ended, or later.
        let next = open.iter().map(|gap| gap.0).chain(self.last_end).min().unwrap_or(until);
        self.waits.forget_before(next);
        self.gaps = open;
    }

    /// The gaps of the whole stream.
    fn finish(mut self) -> LaneGaps {
        self.settle(i64::MAX);
        self.found
    }
}
