//! A lane's side: events from a pool, recorded and sent on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dflash_timeline::record::Severity;
use rtrb::{Consumer, Producer, RingBuffer};

use super::super::event::Remark;
use super::super::hub::{Hub, LaneShared};
use super::shared::{DeviceState, NewDeviceLane, Recorded, Recycled};
use crate::{DeviceError, DeviceEvent, DeviceStream, StreamKey};

/// The number of a moment that could not be recorded.
pub(crate) const LOST: u64 = u64::MAX;

/// Moments on one stream that lie less than this apart on the host are one: no work can have been queued in between. The
/// quickest launch of a kernel takes twice as long.
const SHARE_NS: u64 = 2_000;

/// Events of a lane that may be under way.
const UNDER_WAY: usize = 4096;

/// A lane that uses streams.
#[derive(Debug)]
pub(crate) struct DeviceLane {
    hub: Arc<Hub>,
    shared: Arc<LaneShared>,
    recorded: Producer<Recorded>,
    recycled: Consumer<Recycled>,
    devices: Vec<Pool>,
    /// Number of the next moment.
    next: u64,
    last: Option<Last>,
    /// Streams that this lane has used.
    streams: Vec<StreamKey>,
    share_ticks: u64,
    /// Spans open that have begun on a stream.
    open: u32,
}

/// Events of one device that nobody uses.
#[derive(Debug)]
struct Pool {
    state: Arc<DeviceState>,
    events: Vec<Box<dyn DeviceEvent>>,
}

/// The moment recorded last.
#[derive(Debug)]
struct Last {
    key: StreamKey,
    number: u64,
    /// When the host had done it, ticks.
    at: u64,
}

impl DeviceLane {
    #[cold]
    pub(crate) fn new(hub: &Arc<Hub>, shared: &Arc<LaneShared>) -> Self {
        let (recorded, recorded_to_time) = RingBuffer::new(UNDER_WAY);
        let (recycled_to_use, recycled) = RingBuffer::new(UNDER_WAY);
        let shared = Arc::clone(shared);
        hub.add_device_lane(NewDeviceLane {
            shared: Arc::clone(&shared),
            recorded: recorded_to_time,
            recycled: recycled_to_use,
        });
        let share_ticks = hub.clock.ticks_in(SHARE_NS);
        let hub = Arc::clone(hub);
        let (devices, streams) = (Vec::new(), Vec::new());
        Self { hub, shared, recorded, recycled, devices, next: 0, last: None, streams, share_ticks, open: 0 }
    }

    /// Two lanes on one stream are worth a word: between two events of the one lies the other's work, too.
    #[cold]
    fn first_on(&mut self, key: StreamKey) {
        self.streams.push(key);
        let LaneShared { name, device, .. } = &*self.shared;
        if let Some(other) = self.hub.device.first_on(key, name) {
            let text = format!(
                "{other} and {name} work on the same stream of {device}: the device times of each include what the other \
                 did there meanwhile"
            );
            self.hub.remark(Remark::Mark { severity: Severity::Info, at: self.hub.clock.ticks(), text });
        }
    }

    /// The number of this moment on a stream; `now` is the host's time. [`LOST`]: there was no room for it. `None`: the
    /// device is not timed (any more).
    pub(crate) fn moment(&mut self, stream: &dyn DeviceStream, key: StreamKey, now: u64) -> Option<u64> {
        if let Some(last) = &self.last
            && last.key == key
            && now.saturating_sub(last.at) <= self.share_ticks
        {
            return Some(last.number);
        }
        if !self.streams.contains(&key) {
            self.first_on(key);
        }
        let place = self.place(stream, key);
        if self.devices[place].state.has_failed() {
            return None;
        }
        if self.recorded.is_full() {
            return Some(LOST);
        }
        match self.record(stream, place) {
            Ok(event) => Some(self.send(key, event)),
            Err(error) => {
                self.devices[place].state.fail(&self.hub, &error);
                None
            }
        }
    }

    /// The host is done with the moment that it asked for.
    #[inline]
    pub(crate) fn done(&mut self, now: u64) {
        if let Some(last) = &mut self.last {
            last.at = now;
        }
    }

    /// A span has begun at a moment: its time is kept until the span has ended.
    #[inline]
    pub(crate) fn open(&mut self, moment: u64) {
        if self.open == 0 {
            self.shared.device_times.oldest.store(moment, Ordering::Release);
        }
        self.open += 1;
    }

    /// A span that [`open`](Self::open) was called for has gone, and its record, if it has one, is in the ring.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.shared.device_times.oldest.store(u64::MAX, Ordering::Release);
        }
    }

    /// All spans were cut off the lane's stack: their guards will not say so any more.
    #[cold]
    pub(crate) fn close_all(&mut self) {
        self.open = 0;
        self.shared.device_times.oldest.store(u64::MAX, Ordering::Release);
    }

    #[inline]
    fn place(&mut self, stream: &dyn DeviceStream, key: StreamKey) -> usize {
        match self.devices.iter().position(|pool| pool.state.index == key.device) {
            Some(place) => place,
            None => self.first_use(stream),
        }
    }

    #[cold]
    fn first_use(&mut self, stream: &dyn DeviceStream) -> usize {
        let state = self.hub.device_state(stream, &self.shared);
        self.devices.push(Pool { state, events: Vec::new() });
        self.devices.len() - 1
    }

    fn record(&mut self, stream: &dyn DeviceStream, place: usize) -> Result<Box<dyn DeviceEvent>, DeviceError> {
        let mut event = match self.take(place) {
            Some(event) => event,
            None => stream.new_event()?,
        };
        stream.record(&mut *event)?;
        Ok(event)
    }

    /// An event of this very device, if one is free.
    fn take(&mut self, place: usize) -> Option<Box<dyn DeviceEvent>> {
        if self.devices[place].events.is_empty() {
            while let Ok((device, event)) = self.recycled.pop() {
                if let Some(pool) = self.devices.iter_mut().find(|pool| pool.state.index == device) {
                    pool.events.push(event);
                }
            }
        }
        self.devices[place].events.pop()
    }

    fn send(&mut self, key: StreamKey, event: Box<dyn DeviceEvent>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.last = Some(Last { key, number, at: 0 });
        // There is room: `moment` looked, and nobody else puts anything in.
        let _ = self.recorded.push(Recorded { number, key, event });
        number
    }
}
