//! The guard of a span with a stream. A type of its own, so that the host span's stays small.
//!
//! At the begin the event is recorded before the clock is read, at the end after it: the host's time of a span is without
//! what its events cost.

use super::device::{DeviceLane, LOST};
use super::event::{Event, NONE, Ticket};
use super::hub::bump;
use super::lane::{self, Current};
use super::level;
use super::site::Site;
use super::span::SpanGuard;
use crate::{DeviceStream, Level, StreamArgument, StreamKey};

/// A span with a stream that is open. It borrows the stream, so that both ends are recorded there:
///
/// ```compile_fail
/// # use dflash_profiler::{sim::{SimClock, SimDevice}, span};
/// let stream = SimDevice::new(0, SimClock::real()).stream(0);
/// let span = span!("a", &stream);
/// drop(stream);
/// drop(span);
/// ```
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped: bind it to a name, not to `_`"]
pub struct DeviceSpanGuard<'a> {
    span: SpanGuard,
    /// `None`: a host span.
    begun: Option<Begun<'a>>,
}

#[derive(Debug)]
struct Begun<'a> {
    stream: &'a dyn DeviceStream,
    key: StreamKey,
    /// The moment at its begin.
    moment: u64,
}

impl<'a> DeviceSpanGuard<'a> {
    /// Begins a span. Off, this is one relaxed load and a branch that is not taken.
    #[doc(hidden)]
    #[inline(always)]
    pub fn enter(site: &'static Site, index: Option<u64>, stream: impl StreamArgument<'a>) -> Self {
        let level = level::current();
        if level == Level::Off as u8 {
            return Self { span: SpanGuard::nothing(), begun: None };
        }
        Self::begin(site, index.unwrap_or(NONE), level, stream.stream())
    }

    #[inline(never)]
    fn begin(site: &'static Site, index: u64, level: u8, stream: Option<&'a dyn DeviceStream>) -> Self {
        let Some(stream) = stream else {
            return Self { span: SpanGuard::begin(site, index, level), begun: None };
        };
        lane::with(|lane| lane.begin_device_span(site.id(), index, level, stream))
            .flatten()
            .unwrap_or(Self { span: SpanGuard::nothing(), begun: None })
    }

    #[inline(never)]
    fn end(&mut self) {
        if let Some(begun) = self.begun.take()
            && !level::is_forked()
        {
            // Nobody ends it without a lane, as with a host span.
            let span = self.span.disarm();
            lane::with(|lane| lane.end_device_span(&span, &begun));
            std::mem::forget(span);
        }
    }
}

impl Drop for DeviceSpanGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.span.is_recorded() {
            self.end();
        }
    }
}

impl Current {
    fn begin_device_span<'a>(
        &mut self,
        site: u32,
        index: u64,
        level: u8,
        stream: &'a dyn DeviceStream,
    ) -> Option<DeviceSpanGuard<'a>> {
        let depth = self.open.depth();
        let wanted = depth < self.limits[usize::from(level >= Level::Layers as u8)];
        let stride = self.shared.device_times.stride(site);
        if !wanted || self.iteration.is_some_and(|number| !number.is_multiple_of(stride)) {
            return self.begin_span(site, index, level).map(|span| DeviceSpanGuard { span, begun: None });
        }
        if depth == self.watched {
            self.allocator_before_stage();
        }
        let asked = self.clock.ticks();
        let key = stream.key();
        let moment = self.device().moment(stream, key, asked);
        let span = self.push_span(depth, site, index);
        let (begin, _, _) = span.place();
        bump(&self.shared.spent, begin.saturating_sub(asked));
        if let Some(moment) = moment.filter(|moment| *moment != LOST) {
            self.device().done(begin);
            self.device().open(moment);
        }
        Some(DeviceSpanGuard { span, begun: moment.map(|moment| Begun { stream, key, moment }) })
    }

    fn end_device_span(&mut self, span: &SpanGuard, begun: &Begun<'_>) {
        let end = self.clock.ticks();
        let here = self.holds(span);
        if let Some(level) = self.close_span(span, end) {
            let record = self.record_of(span, level, end);
            let moment = self.device().moment(begun.stream, begun.key, end).unwrap_or(LOST);
            let after = self.clock.ticks();
            if moment != LOST {
                self.device().done(after);
            }
            bump(&self.shared.spent, after.saturating_sub(end));
            self.emit_with(Event::Ticket(Ticket { begin: begun.moment, end: moment, stream: begun.key }), record);
            let (_, depth, site) = span.place();
            if depth == self.watched {
                self.allocator_after_stage(site);
            }
        }
        if here && begun.moment != LOST {
            self.device().close();
        }
    }

    fn device(&mut self) -> &mut DeviceLane {
        self.device.get_or_insert_with(|| Box::new(DeviceLane::new(&self.hub, &self.shared)))
    }
}
