//! Device times that come after their spans: a device may lag seconds behind its host, and what the host knows must be in
//! the stream by then. The span is written without, its time later on, and readers put the two together.

use crate::record::{DeviceTime, LaneId, Span};

/// The device time of a span that stands in the stream without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterTime {
    /// The span's lane.
    pub lane: LaneId,
    /// The span's begin, monotonic nanoseconds: no two spans of a lane begin at the same moment.
    pub begin_ns: i64,
    /// Its device time.
    pub device: DeviceTime,
}

/// From where on a lane's spans may still get a [`LaterTime`]. It stands before the spans that it is about, and replaces
/// what was said of the lane before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The lane.
    pub lane: LaneId,
    /// Spans that begin here, monotonic nanoseconds, or later. `None`: no span any more.
    pub from_ns: Option<i64>,
}

/// Puts device times into their spans, which are sorted by lane and begin. A time whose span is not there (another
/// window, a damaged block) is left out.
pub(crate) fn join(spans: &mut [Span], times: &[LaterTime]) {
    for time in times {
        let key = (time.lane, time.begin_ns);
        let place = spans.partition_point(|span| (span.lane, span.begin_ns) < key);
        if let Some(span) = spans.get_mut(place).filter(|span| (span.lane, span.begin_ns) == key) {
            span.device = Some(time.device);
        }
    }
}
