//! What a lane, the collector and the writer share about device times.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dflash_timeline::record::Severity;
use rtrb::{Consumer, Producer};

use super::super::event::Remark;
use super::super::hub::{Hub, LaneShared, lock};
use super::super::patience::Patience;
use super::collector::Collector;
use crate::{DeviceError, DeviceEvent, DeviceStream, DeviceTiming, StreamKey};

/// Sites that can have a stride: numbers above are always timed.
const STRIDES: usize = 512;

/// A moment that a lane recorded on a stream, on its way to the collector.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Counts the lane's moments.
    pub number: u64,
    pub key: StreamKey,
    pub event: Box<dyn DeviceEvent>,
}

/// An event on its way back, with its device.
pub(crate) type Recycled = (i16, Box<dyn DeviceEvent>);

/// When a lane's moment was; `None`: nobody will ever know.
pub(crate) type Time = (u64, Option<Moment>);

/// A moment on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Sum of the differences along the stream: only to be compared with the stream's other moments.
    pub chain_ns: i64,
    /// On the host's clock.
    pub host_ns: i64,
}

/// A lane's end at the collector.
#[derive(Debug)]
pub(crate) struct NewDeviceLane {
    pub shared: Arc<LaneShared>,
    pub recorded: Consumer<Recorded>,
    pub recycled: Producer<Recycled>,
}

/// A device and its side stream.
type NewDevice = (Arc<DeviceState>, Box<dyn DeviceStream>);

/// A device that some lane uses.
#[derive(Debug)]
pub(crate) struct DeviceState {
    pub index: i16,
    pub name: String,
    failed: AtomicBool,
}

/// An anchor on its way to the stream: device, device's clock, host's clock, uncertainty.
#[derive(Clone, Debug)]
pub(crate) struct NewAnchor {
    pub device: String,
    pub device_ns: i64,
    pub host_ns: i64,
    pub uncertainty_ns: u64,
}

/// Part of what a lane shares.
#[derive(Debug)]
pub(crate) struct DeviceShared {
    /// For the writer to take.
    pub times: Mutex<Vec<Time>>,
    /// The first moment that a span which is open may need; `u64::MAX`: none is.
    pub oldest: AtomicU64,
    strides: Box<[AtomicU8]>,
}

impl Default for DeviceShared {
    fn default() -> Self {
        let strides = (0..STRIDES).map(|_| AtomicU8::new(1)).collect();
        Self { times: Mutex::default(), oldest: AtomicU64::new(u64::MAX), strides }
    }
}

impl DeviceShared {
    /// In which iterations a site is timed: every so many.
    #[inline]
    pub(crate) fn stride(&self, site: u32) -> u64 {
        self.strides.get(site as usize).map_or(1, |stride| u64::from(stride.load(Ordering::Relaxed)))
    }

    pub(crate) fn set_stride(&self, site: u32, stride: u8) {
        if let Some(place) = self.strides.get(site as usize) {
            place.store(stride.max(1), Ordering::Relaxed);
        }
    }
}

/// Part of what everything of one profiler shares.
#[derive(Debug, Default)]
pub(crate) struct DeviceHub {
    pub timing: DeviceTiming,
    pub new_lanes: Mutex<Vec<NewDeviceLane>>,
    /// Devices that the collector has not seen yet, each with a stream for its anchors.
    pub new_devices: Mutex<Vec<NewDevice>>,
    pub anchors: Mutex<Vec<NewAnchor>>,
    states: Mutex<Vec<Arc<DeviceState>>>,
    /// Which lane was the first on each stream.
    streams: Mutex<Vec<(StreamKey, String)>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub stop: AtomicBool,
    pub done: AtomicBool,
    /// CPU time of the collector's thread so far.
    pub cpu_ns: AtomicU64,
}

impl DeviceHub {
    pub(crate) fn new(timing: DeviceTiming) -> Self {
        Self { timing, ..Self::default() }
    }

    /// What the device with this index is called.
    pub(crate) fn name(&self, index: i16) -> String {
        let known = lock(&self.states).iter().find(|state| state.index == index).map(|state| state.name.clone());
        known.unwrap_or_else(|| format!("cuda:{index}"))
    }

    /// A lane uses a stream for the first time. Another lane that does so already.
    pub(crate) fn first_on(&self, key: StreamKey, lane: &str) -> Option<String> {
        let mut streams = lock(&self.streams);
        match streams.iter().find(|(known, _)| *known == key) {
            Some((_, first)) => (first != lane).then(|| first.clone()),
            None => {
                streams.push((key, lane.to_owned()));
                None
            }
        }
    }
}

impl DeviceState {
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Turns the device's timing off, for good, and says so once.
    #[cold]
    pub(crate) fn fail(&self, hub: &Hub, error: &DeviceError) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            let text =
                format!("{name}: no device times from here on, since the device failed: {error}; host times go on");
            hub.remark(Remark::Mark { severity: Severity::Warning, at: hub.clock.ticks(), text });
        }
    }
}

impl Hub {
    /// The state of a stream's device. The first lane that comes with it also gets it a stream for its anchors.
    #[cold]
    pub(crate) fn device_state(&self, stream: &dyn DeviceStream, lane: &LaneShared) -> Arc<DeviceState> {
        let index = stream.key().device;
        let mut states = lock(&self.device.states);
        if let Some(state) = states.iter().find(|state| state.index == index) {
            return Arc::clone(state);
        }
        let named = lane.device.rsplit_once(':').is_some_and(|(_, number)| number.parse() == Ok(index));
        let name = if named { lane.device.clone() } else { format!("cuda:{index}") };
        let state = Arc::new(DeviceState { index, name, failed: AtomicBool::new(false) });
        match stream.side() {
            Ok(side) => lock(&self.device.new_devices).push((Arc::clone(&state), side)),
            Err(error) => state.fail(self, &error),
        }
        states.push(Arc::clone(&state));
        state
    }

    /// Hands a lane to the collector, whose thread begins with the first one.
    #[cold]
    pub(crate) fn add_device_lane(self: &Arc<Self>, lane: NewDeviceLane) {
        let mut thread = lock(&self.device.thread);
        if self.device.stop.load(Ordering::Acquire) {
            return;
        }
        lock(&self.device.new_lanes).push(lane);
        if thread.is_none() {
            let hub = Arc::clone(self);
            let begin = thread::Builder::new().name("dflash-device".into()).spawn(|| Collector::real(hub).run());
            match begin {
                Ok(handle) => *thread = Some(handle),
                Err(error) => {
                    let text = format!("no device times: cannot start the thread dflash-device: {error}");
                    self.remark(Remark::Mark { severity: Severity::Warning, at: self.clock.ticks(), text });
                }
            }
        }
    }

    /// Tells the collector to come to an end. Whether there is one to wait for.
    pub(crate) fn stop_device(&self) -> bool {
        let thread = lock(&self.device.thread);
        self.device.stop.store(true, Ordering::Release);
        thread.as_ref().inspect(|handle| handle.thread().unpark()).is_some()
    }

    /// Waits for the collector a little longer than it may take. A thread that hangs in a call to its device is left
    /// alone: `false`.
    pub(crate) fn join_device(&self, meanwhile: &mut dyn FnMut()) -> bool {
        let mut patience = Patience::new(self.device.timing.finish_deadline + Duration::from_secs(1));
        while !self.device.done.load(Ordering::Acquire) {
            if patience.is_over() {
                return false;
            }
            meanwhile();
            thread::sleep(Duration::from_millis(1));
        }
        // It has only to return.
        lock(&self.device.thread).take().is_none_or(|handle| handle.join().is_ok())
    }
}
