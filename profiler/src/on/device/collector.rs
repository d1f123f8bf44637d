//! The thread `dflash-device`: asks whether events are ready, and when they were.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rtrb::{Consumer, Producer};

use super::super::hub::{Hub, LaneShared, lock};
use super::anchors::{Anchors, Now};
use super::fifo::Fifo;
use super::shared::{DeviceState, NewAnchor, NewDeviceLane, Recorded, Recycled, Time};
use crate::StreamKey;

/// A stream that was not used for so long is forgotten.
const IDLE_NS: i64 = 600_000_000_000;
/// Times that a writer which does not come any more may leave lying about.
const UNREAD: usize = 1 << 20;
/// How often a collector without lanes looks about.
const REST: Duration = Duration::from_millis(100);

/// Everything that the thread owns.
pub(super) struct Collector {
    hub: Arc<Hub>,
    now: Box<dyn Fn() -> i64 + Send>,
    devices: Vec<Device>,
    lanes: Vec<LaneQueue>,
}

struct Device {
    state: Arc<DeviceState>,
    /// `None` after a failure.
    anchors: Option<Anchors>,
}

/// One lane, as the collector sees it.
struct LaneQueue {
    shared: Arc<LaneShared>,
    recorded: Consumer<Recorded>,
    recycled: Producer<Recycled>,
    fifos: Vec<Fifo>,
}

impl Collector {
    /// In real time.
    pub(super) fn real(hub: Arc<Hub>) -> Self {
        Self::new(hub, Box::new(dflash_sys::monotonic_ns))
    }

    pub(super) fn new(hub: Arc<Hub>, now: Box<dyn Fn() -> i64 + Send>) -> Self {
        Self { hub, now, devices: Vec::new(), lanes: Vec::new() }
    }

    /// Runs until the profiler ends and everything is timed, or the time for that is up.
    pub(super) fn run(mut self) {
        let mut last_ns = i64::MAX;
        loop {
            let stop = self.hub.device.stop.load(Ordering::Acquire);
            let busy = self.tick();
            self.hub.device.cpu_ns.store(dflash_sys::thread_cpu_ns(), Ordering::Relaxed);
            if stop {
                last_ns = last_ns.min((self.now)().saturating_add(nanoseconds(self.hub.device.timing.finish_deadline)));
                if !busy || (self.now)() >= last_ns {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            } else {
                let poll = self.hub.device.timing.poll_every;
                thread::park_timeout(if self.lanes.is_empty() { poll.max(REST) } else { poll });
            }
        }
        self.end();
    }

    /// Looks at everything once. Whether something is under way.
    pub(super) fn tick(&mut self) -> bool {
        let device = &self.hub.device;
        let every_ns = nanoseconds(device.timing.anchor_every);
        for (state, side) in lock(&device.new_devices).drain(..) {
            self.devices.push(Device { state, anchors: Some(Anchors::new(side, every_ns)) });
        }
        self.lanes.extend(lock(&device.new_lanes).drain(..).map(LaneQueue::new));
        for device in &mut self.devices {
            device.take_anchor(&self.hub, &*self.now);
        }
        let now_ns = (self.now)();
        // Before the spans behind it are given up by the writer.
        let expired_ns = now_ns.saturating_sub(nanoseconds(device.timing.deadline) / 4 * 3);
        let (hub, devices) = (&self.hub, &mut self.devices);
        self.lanes.retain_mut(|lane| {
            // Looked at first: what was sent before the lane ended is then in the ring.
            let ended = lane.recorded.is_abandoned();
            lane.poll(hub, devices, now_ns, expired_ns);
            !ended || !lane.is_empty()
        });
        self.lanes.iter().any(|lane| !lane.is_empty())
    }

    /// What has not come by now never will.
    fn end(mut self) {
        for lane in &mut self.lanes {
            let mut times = Vec::new();
            while let Ok(recorded) = lane.recorded.pop() {
                times.push((recorded.number, None));
            }
            lane.fifos.iter_mut().for_each(|fifo| fifo.lose(&mut times));
            lane.publish(times);
        }
        self.lanes.clear();
        self.devices.clear();
        self.hub.device.done.store(true, Ordering::Release);
    }
}

impl Device {
    fn take_anchor(&mut self, hub: &Hub, now: Now<'_>) {
        let Some(anchors) = &mut self.anchors else { return };
        if self.state.has_failed() {
            self.anchors = None;
            return;
        }
        match anchors.take(now) {
            Ok(Some(point)) => lock(&hub.device.anchors).push(NewAnchor {
                device: self.state.name.clone(),
                device_ns: point.device_ns,
                host_ns: point.host_ns,
                uncertainty_ns: point.half_ns,
            }),
            Ok(None) => {}
            Err(error) => {
                self.state.fail(hub, &error);
                self.anchors = None;
            }
        }
    }
}

impl LaneQueue {
    fn new(lane: NewDeviceLane) -> Self {
        Self { shared: lane.shared, recorded: lane.recorded, recycled: lane.recycled, fifos: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.recorded.is_empty() && self.fifos.iter().all(Fifo::is_empty)
    }

    fn poll(&mut self, hub: &Hub, devices: &mut [Device], now_ns: i64, expired_ns: i64) {
        for _ in 0..self.recorded.slots() {
            let Ok(Recorded { number, key, event }) = self.recorded.pop() else { break };
            self.fifo(key, now_ns).push(number, event, now_ns);
        }
        let mut times = Vec::new();
        let recycled = &mut self.recycled;
        for fifo in &mut self.fifos {
            let index = fifo.key.device;
            // A device that came this very moment is found the next time.
            let Some(device) = devices.iter_mut().find(|device| device.state.index == index) else { continue };
            let (state, Some(anchors)) = (&device.state, &device.anchors) else {
                fifo.lose(&mut times);
                continue;
            };
            // A lane that has ended, or has enough of them, does not take it: then it is destroyed here.
            let mut recycle = |event| drop(recycled.push((index, event)));
            if let Err(error) = fifo.poll(anchors, expired_ns, &mut times, &mut recycle) {
                state.fail(hub, &error);
                fifo.lose(&mut times);
            }
        }
        self.fifos.retain(|fifo| !fifo.is_empty() || now_ns - fifo.used_ns < IDLE_NS);
        self.publish(times);
    }

    fn fifo(&mut self, key: StreamKey, now_ns: i64) -> &mut Fifo {
        let place = self.fifos.iter().position(|fifo| fifo.key == key).unwrap_or_else(|| {
            self.fifos.push(Fifo::new(key, now_ns));
            self.fifos.len() - 1
        });
        &mut self.fifos[place]
    }

    fn publish(&self, times: Vec<Time>) {
        if !times.is_empty() {
            let mut unread = lock(&self.shared.device_times.times);
            if unread.len() < UNREAD {
                unread.extend(times);
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
