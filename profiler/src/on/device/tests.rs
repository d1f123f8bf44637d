//! The collector against a simulated device, in a time that the test moves: hours pass at once.

mod of_a_lane;
mod of_a_stream;

use std::sync::Arc;
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};

use super::collector::Collector;
use super::shared::{Moment, NewDeviceLane, Recorded, Recycled};
use crate::on::hub::{Hub, LaneShared, lock};
use crate::sim::{SimClock, SimDevice, SimStream};
use crate::timeline::{Manifest, RunDir};
use crate::{DeviceEvent, DeviceStream, Options};

/// Every look at the clock takes 200 ns.
const LOOK: Duration = Duration::from_nanos(200);

/// A lane, its collector and a device, without threads.
struct Bench {
    clock: SimClock,
    device: SimDevice,
    hub: Arc<Hub>,
    shared: Arc<LaneShared>,
    collector: Collector,
    recorded: Producer<Recorded>,
    recycled: Consumer<Recycled>,
    next: u64,
    jitter: u64,
}

impl Bench {
    fn new(drift_ppm: f64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDir::create(directory.path(), "bench", Manifest::default()).unwrap();
        let hub = Arc::new(Hub::new(&Options::new(run)).0);
        let clock = SimClock::manual(5_000_000_000_000).with_step(LOOK);
        let device = SimDevice::new(1, clock.clone()).drift_ppm(drift_ppm).offset_ns(-77_000_000_000);
        let now = clock.clone();
        let collector = Collector::new(Arc::clone(&hub), Box::new(move || now.now_ns()));
        let shared = Arc::new(LaneShared::new("drafter:0", "cuda:1"));
        let (recorded, to_time) = RingBuffer::new(64);
        let (to_use, recycled) = RingBuffer::new(64);
        let lane = NewDeviceLane { shared: Arc::clone(&shared), recorded: to_time, recycled: to_use };
        lock(&hub.device.new_lanes).push(lane);
        hub.device_state(&device.stream(0), &shared);
        Self { clock, device, hub, shared, collector, recorded, recycled, next: 0, jitter: 0 }
    }

    /// Records a moment on a stream. Its number, and when it truly is.
    fn moment(&mut self, stream: &SimStream) -> (u64, i64) {
        let mut event = self.recycled.pop().map_or_else(|_| stream.new_event().unwrap(), |(_, event)| event);
        stream.record(&mut *event).unwrap();
        self.send(stream, event);
        (self.next - 1, stream.free_ns())
    }

    fn send(&mut self, stream: &SimStream, event: Box<dyn DeviceEvent>) {
        self.recorded.push(Recorded { number: self.next, key: stream.key(), event }).unwrap();
        self.next += 1;
    }

    /// Lets time pass, with a tick of the collector every 20 ms.
    fn pass(&mut self, duration: Duration) {
        let until = self.clock.now_ns() + duration.as_nanos() as i64;
        while self.clock.now_ns() < until {
            self.collector.tick();
            // As uneven as a thread wakes: the rounding of equal differences would add up.
            self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.clock.advance(Duration::from_nanos(20_000_000 + (self.jitter >> 47)));
        }
        self.collector.tick();
    }

    /// The times since the last call, by number.
    fn times(&self) -> Vec<(u64, Option<Moment>)> {
        std::mem::take(&mut *lock(&self.shared.device_times.times))
    }

    fn time(&self, number: u64) -> Moment {
        let times = self.times();
        let found = times.iter().find(|(n, _)| *n == number);
        found.and_then(|(_, moment)| *moment).unwrap_or_else(|| panic!("no {number} in {times:?}"))
    }

    /// Half widths of the anchors since the last call.
    fn uncertainties(&self) -> Vec<u64> {
        lock(&self.hub.device.anchors).drain(..).map(|anchor| anchor.uncertainty_ns).collect()
    }
}

#[test]
fn durations_are_exact_and_places_within_the_anchors_uncertainty() {
    for drift_ppm in [-7.0, 0.0, 5.0] {
        let mut bench = Bench::new(drift_ppm);
        bench.pass(Duration::from_secs(20));
        let uncertainty = bench.uncertainties().into_iter().max().unwrap() as i64;
        assert!((1_000..10_000).contains(&uncertainty), "{uncertainty} ns");
        let stream = bench.device.stream(3);
        for step in 0..500_u64 {
            let (begin, begin_ns) = bench.moment(&stream);
            stream.work(Duration::from_nanos(40_000 + 7_777 * step));
            let (end, end_ns) = bench.moment(&stream);
            bench.pass(Duration::from_millis(60));
            let times = bench.times();
            let [from, to] = [begin, end].map(|number| times.iter().find(|(n, _)| *n == number).unwrap().1.unwrap());
            let truth = end_ns - begin_ns;
            let off = to.chain_ns - from.chain_ns - truth;
            assert!(off.abs() <= 32 + truth / 100_000, "{off} ns off in {truth}");
            let place = from.host_ns - begin_ns;
            assert!(place.abs() <= uncertainty + 1_000, "step {step}: {place} ns off, {uncertainty} ns are allowed");
        }
        assert_eq!(bench.device.refused(), 0);
    }
}

#[test]
fn an_hour_without_an_event() {
    let mut bench = Bench::new(6.0);
    let stream = bench.device.stream(0);
    bench.pass(Duration::from_secs(5));
    let (begin, begin_ns) = bench.moment(&stream);
    bench.pass(Duration::from_secs(60));
    let from = bench.time(begin);
    // The hour would be 0.1 ms off as an f32 of milliseconds. It is forgotten after ten minutes as well.
    for idle in [300, 3_600] {
        bench.pass(Duration::from_secs(idle));
        let (end, end_ns) = bench.moment(&stream);
        bench.pass(Duration::from_secs(1));
        let to = bench.time(end);
        let truth = (end_ns - begin_ns) as f64 * (1.0 + 6e-6);
        let off = (to.chain_ns - from.chain_ns) as f64 - truth;
        assert!(off.abs() < 10_000.0, "{off} ns off after {idle} s");
        assert!((to.host_ns - end_ns).abs() < 6_000, "{} ns off the host's clock", to.host_ns - end_ns);
    }
}

#[test]
fn events_are_used_again_and_none_is_left() {
    let mut bench = Bench::new(0.0);
    let stream = bench.device.stream(0);
    for _ in 0..1_000 {
        bench.moment(&stream);
        bench.moment(&stream);
        bench.pass(Duration::from_millis(30));
    }
    let made = bench.device.created_events();
    assert!(made < 20, "{made} events for 2000 moments");
    let device = bench.device.clone();
    drop(bench);
    assert_eq!(device.live_events(), 0);
}

#[test]
fn an_anchor_that_cannot_be_taken_leaves_the_last_one() {
    let mut bench = Bench::new(0.0);
    bench.pass(Duration::from_secs(10));
    assert!(bench.uncertainties().len() > 5);
    bench.device.delay_side(Duration::from_millis(50));
    let begin = bench.clock.now_ns();
    bench.clock.advance(Duration::from_secs(2));
    bench.collector.tick();
    let waited = bench.clock.now_ns() - begin - 2_000_000_000;
    assert!(waited < 5_000_000, "{waited} ns of waiting");
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.uncertainties(), Vec::<u64>::new());
    let stream = bench.device.stream(0);
    let (number, true_ns) = bench.moment(&stream);
    bench.pass(Duration::from_millis(100));
    let off = bench.time(number).host_ns - true_ns;
    assert!(off.abs() < 5_000, "{off} ns off");
    bench.device.delay_side(Duration::ZERO);
    bench.pass(Duration::from_secs(3));
    assert!(!bench.uncertainties().is_empty(), "taken again");
}

#[test]
fn a_device_that_fails_gives_everything_up_and_says_so_once() {
    let mut bench = Bench::new(0.0);
    let stream = bench.device.stream(0);
    bench.pass(Duration::from_secs(1));
    let (a, _) = bench.moment(&stream);
    let (b, _) = bench.moment(&stream);
    bench.device.fail(Some("CUDA error: the GPU has fallen off the bus"));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.times(), [(a, None), (b, None)]);
    assert_eq!(bench.hub.remarks.counts().0, 1);
}
