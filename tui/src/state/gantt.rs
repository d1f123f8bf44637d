//! A stretch of the timeline as it was: every lane's stages, its stream, and the batches handed from lane to lane.

use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Flow, FlowEnd, Iteration, LaneId, Span, StreamId};

/// Iterations that are shown at first, of the lane whose iterations are longest.
const ITERATIONS: u64 = 4;
/// Without any iteration.
const USUAL_NS: i64 = 1_000_000_000;
/// The shortest stretch, nanoseconds.
const SHORTEST_NS: i64 = 10_000;

/// Which stretch is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Zoom {
    /// Powers of two: 1 shows half as much as 0.
    pub power: i32,
    /// Eighths of the stretch before the newest record.
    pub back: i64,
}

/// One named stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Its name.
    pub name: String,
    /// Begin, monotonic nanoseconds.
    pub begin_ns: i64,
    /// End, monotonic nanoseconds.
    pub end_ns: i64,
}

/// One end of a hand-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOff {
    /// Equal at both ends.
    pub id: u64,
    /// Whether this lane put it; else it took it.
    pub put: bool,
    /// When, monotonic nanoseconds.
    pub time_ns: i64,
}

/// What a lane did on one stream of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GanttStream {
    /// Its device, and its number where the lane uses several: `cuda:0 stream 7`.
    pub name: String,
    /// Device time of the outermost spans on it.
    pub stretches: Vec<Stretch>,
    id: Option<StreamId>,
    /// Host's end of the last of them: what begins before is nested in it.
    until_ns: i64,
}

/// What a lane did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GanttLane {
    /// Its place in the model's list of lanes.
    pub lane: usize,
    /// Iterations, named by their numbers.
    pub iterations: Vec<Stretch>,
    /// Host time by depth: stages, then what is nested in them.
    pub host: Vec<Vec<Stretch>>,
    /// Device time by stream.
    pub streams: Vec<GanttStream>,
    /// Batches put and taken.
    pub hand_offs: Vec<HandOff>,
}

/// A batch that went from one lane to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    /// Its number.
    pub id: u64,
    /// Who put it.
    pub from: String,
    /// Who took it.
    pub to: String,
    /// Nanoseconds between.
    pub waited_ns: u64,
}

/// The stretch that is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gantt {
    /// Its begin, monotonic nanoseconds.
    pub from_ns: i64,
    /// Its end, monotonic nanoseconds.
    pub to_ns: i64,
    /// One for each lane.
    pub lanes: Vec<GanttLane>,
    /// Batches whose both ends lie in the stretch, newest first.
    pub journeys: Vec<Journey>,
}

impl Gantt {
    /// Cuts a stretch out of `timeline`, of which nothing after `last_ns` is known yet.
    #[must_use]
    pub fn of(timeline: &Timeline, zoom: Zoom, (first_ns, last_ns): (i64, i64)) -> Self {
        let length = scaled(usual_length(timeline, last_ns), zoom.power, last_ns.saturating_sub(first_ns));
        let back = (length / 8).saturating_mul(zoom.back).min(last_ns.saturating_sub(first_ns).max(0));
        let to_ns = last_ns.saturating_sub(back);
        let from_ns = to_ns.saturating_sub(length);
        let lanes = (0..timeline.lanes.len()).map(|lane| cut(timeline, lane, (from_ns, to_ns), last_ns)).collect();
        Self { from_ns, to_ns, lanes, journeys: journeys(timeline, (from_ns, to_ns)) }
    }
}

/// Half as much for each power, at least some microseconds, at most all there is.
fn scaled(length: i64, power: i32, most: i64) -> i64 {
    let factor = 2f64.powi(-power.clamp(-40, 40));
    ((length as f64 * factor) as i64).clamp(SHORTEST_NS, most.max(length).max(SHORTEST_NS))
}

/// The last iterations of the slowest lane.
fn usual_length(timeline: &Timeline, last_ns: i64) -> i64 {
    let mut longest = 0;
    for of_lane in timeline.iterations.chunk_by(|a, b| a.lane == b.lane) {
        let known = of_lane.partition_point(|pass| pass.begin_ns <= last_ns);
        if let Some(newest) = known.checked_sub(1).and_then(|at| of_lane.get(at)) {
            longest = longest.max(newest.duration_ns);
        }
    }
    if longest == 0 { USUAL_NS } else { i64::try_from(longest.saturating_mul(ITERATIONS)).unwrap_or(i64::MAX) }
}

fn cut(timeline: &Timeline, lane: usize, (from_ns, to_ns): (i64, i64), last_ns: i64) -> GanttLane {
    let id = LaneId(u32::try_from(lane).unwrap_or(u32::MAX));
    let mut found = GanttLane { lane, ..GanttLane::default() };
    for pass in of_lane(&timeline.iterations, id, |pass: &Iteration| pass.lane) {
        let end_ns = pass.begin_ns.saturating_add_unsigned(pass.duration_ns);
        if end_ns > from_ns && pass.begin_ns < to_ns && end_ns <= last_ns {
            found.iterations.push(Stretch { name: pass.number.to_string(), begin_ns: pass.begin_ns, end_ns });
        }
    }
    for span in of_lane(&timeline.spans, id, |span: &Span| span.lane) {
        found.add(timeline, span, (from_ns, to_ns), last_ns);
    }
    for open in timeline.open.iter().filter(|open| open.lane == id && open.begin_ns < to_ns && to_ns == last_ns) {
        let name = timeline.name(open.name).to_owned();
        found.host_at(0).push(Stretch { name, begin_ns: open.begin_ns, end_ns: to_ns });
    }
    let inside = |flow: &&Flow| flow.lane == id && flow.time_ns >= from_ns && flow.time_ns < to_ns;
    let end = |flow: &Flow| HandOff { id: flow.id, put: flow.end == FlowEnd::Put, time_ns: flow.time_ns };
    found.name_streams(timeline, id);
    found.hand_offs = timeline.flows.iter().filter(inside).map(end).collect();
    found
}

impl GanttLane {
    fn host_at(&mut self, depth: usize) -> &mut Vec<Stretch> {
        if self.host.len() <= depth {
            self.host.resize_with(depth + 1, Vec::new);
        }
        &mut self.host[depth]
    }

    fn add(&mut self, timeline: &Timeline, span: &Span, (from_ns, to_ns): (i64, i64), last_ns: i64) {
        let end_ns = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        let shown = |begin: i64, end: i64| end > from_ns && begin < to_ns && end <= last_ns;
        if shown(span.begin_ns, end_ns) && span.depth < 4 {
            let name = timeline.name(span.name).to_owned();
            self.host_at(usize::from(span.depth)).push(Stretch { name, begin_ns: span.begin_ns, end_ns });
        }
        let Some(device) = span.device else { return };
        let device_end_ns = device.begin_ns.saturating_add_unsigned(device.duration_ns);
        if !shown(device.begin_ns, device_end_ns) {
            return;
        }
        let known = self.streams.iter().position(|stream| stream.id == device.stream);
        let at = known.unwrap_or_else(|| {
            self.streams.push(GanttStream { id: device.stream, until_ns: i64::MIN, ..GanttStream::default() });
            self.streams.len() - 1
        });
        let stream = &mut self.streams[at];
        if span.begin_ns >= stream.until_ns {
            let name = timeline.name(span.name).to_owned();
            stream.stretches.push(Stretch { name, begin_ns: device.begin_ns, end_ns: device_end_ns });
            stream.until_ns = end_ns;
        }
    }

    /// Calls the streams by their devices and numbers, and puts them in order.
    fn name_streams(&mut self, timeline: &Timeline, lane: LaneId) {
        let place = |stream: &GanttStream| match stream.id.and_then(|id| timeline.stream(id)) {
            Some(stream) => (stream.device.clone(), Some(stream.number)),
            None => (timeline.lane(lane).map_or("device", |lane| &lane.device).to_owned(), None),
        };
        self.streams.sort_by_cached_key(place);
        let several = self.streams.len() > 1;
        for stream in &mut self.streams {
            stream.name = match place(stream) {
                (device, Some(number)) if several => format!("{device} stream {number}"),
                (device, _) => device,
            };
        }
    }
}

/// The records of one lane, of records sorted by lane.
fn of_lane<T>(records: &[T], lane: LaneId, lane_of: impl Fn(&T) -> LaneId) -> &[T] {
    let first = records.partition_point(|record| lane_of(record) < lane);
    let last = records.partition_point(|record| lane_of(record) <= lane);
    &records[first..last]
}

fn journeys(timeline: &Timeline, (from_ns, to_ns): (i64, i64)) -> Vec<Journey> {
    let name = |lane| timeline.lane(lane).map_or("?", |lane| lane.name.as_str()).to_owned();
    let inside = |flow: &&Flow| flow.time_ns >= from_ns && flow.time_ns < to_ns;
    let mut found = Vec::new();
    for take in timeline.flows.iter().rev().filter(inside).filter(|flow| flow.end == FlowEnd::Take) {
        // A batch may go on from lane to lane under one number: the put nearest before is the one that was taken.
        let before = timeline.flows.partition_point(|flow| flow.time_ns <= take.time_ns);
        let puts = timeline.flows[..before].iter().rev().take_while(|flow| flow.time_ns >= from_ns);
        let Some(put) = puts.into_iter().find(|flow| flow.id == take.id && flow.end == FlowEnd::Put) else { continue };
        let waited_ns = take.time_ns.abs_diff(put.time_ns);
        found.push(Journey { id: take.id, from: name(put.lane), to: name(take.lane), waited_ns });
        if found.len() == 64 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zooming_halves_and_stops_at_both_ends() {
        assert_eq!(scaled(1_000_000, 1, i64::MAX), 500_000);
        assert_eq!(scaled(1_000_000, 40, i64::MAX), SHORTEST_NS);
        assert_eq!(scaled(1_000_000, -40, 3_000_000), 3_000_000);
        assert_eq!(scaled(i64::MAX, -40, i64::MAX), i64::MAX);
    }
}
