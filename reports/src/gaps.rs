//! Device gaps: time between one device span's end and the next one's begin, and what the lane's host did meanwhile.
//!
//! A lane's stages with a device time are taken as one stream. Only gaps within and between neighbouring iterations of
//! kind `train` count, and only where no stage stands between that has a device time elsewhere but none here (sampled, or
//! never resolved): such places are counted, not guessed. A gap is not idle time: what runs on other streams, or without
//! a span, is not seen. Only a kernel capture tells.

use crate::intervals::{Along, Union};
use crate::walk::{self, Placed, Window};
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, Span};
use serde::Serialize;
use std::collections::BTreeMap;

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
    let mut timed = Timed::default();
    timeline.spans.iter().for_each(|span| timed.learn(span));
    if timed.0.is_empty() {
        return Vec::new();
    }
    let (mut gathered, words) = (Gathered::default(), Words::of(timeline));
    walk::for_each_pass(timeline, window, |iteration, spans| gathered.add(&words, &timed, iteration, spans));
    gathered.finish(timeline)
}

/// The gaps of all lanes, iteration by iteration.
#[derive(Default)]
pub(crate) struct Gathered(BTreeMap<LaneId, Walker>);

impl Gathered {
    pub(crate) fn add(&mut self, words: &Words, timed: &Timed, iteration: &Iteration, spans: &[Placed<'_>]) {
        if timed.has_lane(iteration.lane) {
            self.0.entry(iteration.lane).or_default().add(words, timed, iteration, spans);
        }
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn finish(self, timeline: &Timeline) -> Vec<LaneGaps> {
        self.0.into_iter().filter_map(|(id, walker)| walker.finish(timeline, id)).collect()
    }
}

/// Which stages have a device time somewhere: by lane, then by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed(Vec<Vec<bool>>);

impl Timed {
    /// Takes note of a span.
    #[inline]
    pub(crate) fn learn(&mut self, span: &Span) {
        if span.depth == 0 && span.device.is_some() && !self.has(span) {
            let (lane, name) = (span.lane.0 as usize, span.name.0 as usize);
            let lanes = self.0.len().max(lane + 1);
            self.0.resize_with(lanes, Vec::new);
            let names = self.0[lane].len().max(name + 1);
            self.0[lane].resize(names, false);
            self.0[lane][name] = true;
        }
    }

    /// Takes over what another has learnt of other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        let lanes = self.0.len().max(other.0.len());
        self.0.resize_with(lanes, Vec::new);
        let learnt = self.0.iter_mut().zip(other.0).filter(|(_, names)| !names.is_empty());
        learnt.for_each(|(own, names)| *own = names);
    }

    /// Whether the span's stage has one.
    #[inline]
    fn has(&self, span: &Span) -> bool {
        self.0.get(span.lane.0 as usize).and_then(|names| names.get(span.name.0 as usize)).copied().unwrap_or(false)
    }

    /// Whether a lane has device times at all.
    pub(crate) fn has_lane(&self, LaneId(lane): LaneId) -> bool {
        self.0.get(lane as usize).is_some_and(|names| !names.is_empty())
    }
}

/// Gaps and waits after which a walker accounts for those that it can: it must not grow with the run.
const MANY: usize = 4096;

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
    fn add(&mut self, words: &Words, span: &Span) {
        let word = words.get(span.name);
        let list = match word {
            _ if word.sync => &mut self.sync,
            _ if word.input => &mut self.input,
            _ if word.room => &mut self.room,
            _ => return,
        };
        let end = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        list.push((span.begin_ns.max(self.until), end));
        self.until = self.until.max(end);
    }

    fn len(&self) -> usize {
        self.input.len() + self.room.len() + self.sync.len()
    }

    fn forget_before(&mut self, ns: i64) {
        [&mut self.input, &mut self.room, &mut self.sync]
            .into_iter()
            .for_each(|list| list.retain(|(_, end)| *end > ns));
    }
}

/// Goes along one lane.
pub(crate) struct Walker {
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
    /// Goes on by one iteration.
    pub(crate) fn add(&mut self, words: &Words, timed: &Timed, iteration: &Iteration, spans: &[Placed<'_>]) {
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
                Some(device) if span.depth == 0 => {
                    let end = device.begin_ns.saturating_add_unsigned(device.duration_ns);
                    self.gaps
                        .extend(self.last_end.filter(|last| *last < device.begin_ns).map(|l| (l, device.begin_ns)));
                    self.last_end = Some(self.last_end.map_or(end, |last| last.max(end)));
                    self.found.device_ns = self.found.device_ns.saturating_add(device.duration_ns);
                }
                None if span.depth == 0 && timed.has(span) => {
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

    /// The gaps of the whole lane.
    pub(crate) fn finish(mut self, timeline: &Timeline, id: LaneId) -> Option<LaneGaps> {
        self.settle(i64::MAX);
        let lane = timeline.lane(id)?;
        Some(LaneGaps { lane: lane.name.clone(), device: lane.device.clone(), rank: lane.rank, ..self.found })
    }
}
