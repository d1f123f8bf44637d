//! A device that fails, lies, hangs or is slow: the host's spans go on, and what is missing is counted.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice, SimStream};
use dflash_profiler::timeline::Timeline;
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{DeviceError, DeviceEvent, DeviceStream, Kind, StreamKey, begin_iteration, span};

use crate::support::Recording;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn recording(deadline: Duration) -> Recording {
    Recording::with(|options| {
        options.write_every = ms(5);
        options.device.poll_every = ms(1);
        options.device.stride_below = Duration::ZERO;
        options.device.deadline = deadline;
        options.device.finish_deadline = ms(100);
    })
}

fn step(stream: &impl DeviceStream) {
    let _iteration = begin_iteration(Kind::Train);
    let _span = span!("stage", stream);
    std::thread::sleep(ms(1));
}

/// Until the stream is so far.
fn wait(recording: &Recording, far: impl Fn(&Timeline) -> bool) {
    let mut tail = dflash_profiler::timeline::Tail::open(&recording.run).unwrap();
    let begin = Instant::now();
    while !far(tail.timeline()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        std::thread::sleep(ms(5));
        tail.poll().unwrap();
    }
}

#[test]
fn what_is_not_done_at_the_end_is_unresolved() {
    let device = SimDevice::new(0, SimClock::real());
    let stream = device.stream(0);
    let recording = recording(Duration::from_secs(1_000));
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    step(&stream);
    stream.work(Duration::from_secs(3_600));
    (0..5).for_each(|_| step(&stream));
    drop(lane);
    let begin = Instant::now();
    let (timeline, totals) = recording.finish();
    assert!(
        begin.elapsed() < Duration::from_secs(120),
        "it waits for a moment, neither for the device nor the deadline"
    );
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), totals.unresolved), (6, 6, 5));
    assert_eq!(timeline.spans.iter().filter(|span| span.device.is_some()).count(), 1);
    assert_eq!(device.live_events(), 0);
}

#[test]
fn after_the_deadline_a_span_waits_no_longer() {
    let device = SimDevice::new(0, SimClock::real());
    let stream = device.stream(0);
    let recording = recording(ms(100));
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    stream.work(Duration::from_secs(3_600));
    let begun = Instant::now();
    step(&stream);
    // In the stream at once; its events are given up after three quarters of the deadline.
    wait(&recording, |timeline| timeline.spans.len() == 1);
    wait(&recording, |timeline| timeline.totals.unresolved == 1);
    let given_up = Instant::now();
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert!(given_up > begun + ms(70), "it was waited for");
    assert_eq!((timeline.spans.len(), totals.unresolved, timeline.spans[0].device), (1, 1, None));
}

#[test]
fn no_more_than_a_bound_wait() {
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let recording = Recording::with(|options| {
        options.write_every = ms(2);
        options.device.waiting = 10;
        options.device.finish_deadline = ms(10);
    });
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    stream.work(Duration::from_secs(3_600));
    (0..50).for_each(|_| step(&stream));
    wait(&recording, |timeline| timeline.totals.unresolved >= 40);
    drop(lane);
    assert_eq!(recording.finish().1.unresolved, 50);
}

#[test]
fn lost_events_cost_the_spans_that_need_them() {
    let device = SimDevice::new(0, SimClock::real());
    let stream = device.stream(0);
    let recording = recording(Duration::from_secs(4));
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    step(&stream);
    device.lose(1);
    (0..10).for_each(|_| step(&stream));
    drop(lane);
    let timed = |timeline: &Timeline| timeline.spans.iter().filter(|span| span.device.is_some()).count();
    wait(&recording, |timeline| timed(timeline) as u64 + timeline.totals.unresolved == 11);
    let (timeline, totals) = recording.finish();
    assert_eq!(timeline.spans.len(), 11);
    // The next begin may be the moment that was lost as well, if the host was quick.
    assert!((1..=2).contains(&totals.unresolved), "{totals:?}");
}

#[test]
fn a_device_that_fails_in_mid_run_is_said_once() {
    let device = SimDevice::new(2, SimClock::real());
    let (a, b) = (device.stream(0), device.stream(1));
    let recording = recording(Duration::from_secs(10));
    let lane = recording.profiler.lane("a", "cuda:2").enter();
    (0..5).for_each(|_| step(&a));
    std::thread::sleep(ms(50));
    device.fail(Some("CUDA error: an illegal memory access was encountered"));
    (0..5).for_each(|_| step(&a));
    (0..5).for_each(|_| step(&b));
    device.fail(None);
    (0..5).for_each(|_| step(&a));
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), totals.dropped), (20, 20, 0));
    assert_eq!(timeline.marks.len(), 1, "{:?}", timeline.marks);
    assert_eq!(timeline.marks[0].severity, Severity::Warning);
    let text = &timeline.marks[0].text;
    assert!(text.starts_with("cuda:2: no device times") && text.contains("illegal memory access"), "{text}");
    let timed = timeline.spans.iter().filter(|span| span.device.is_some()).count() as u64;
    assert!(timed + totals.unresolved >= 5 && timed + totals.unresolved <= 6, "{timed} timed, {totals:?}");
    assert_eq!(device.live_events(), 0);
}

#[test]
fn a_device_without_a_side_stream_is_not_timed() {
    let device = SimDevice::new(0, SimClock::real());
    device.refuse_side();
    let stream = device.stream(0);
    let recording = recording(Duration::from_secs(10));
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    (0..3).for_each(|_| step(&stream));
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), totals.unresolved, timeline.marks.len()), (3, 0, 1));
    assert_eq!(stream.records(), 0);
}

/// A stream whose events, once they hang, hang every call that asks for them.
#[derive(Debug)]
struct Hanging(SimStream, &'static AtomicBool);

#[derive(Debug)]
struct HangingEvent(Box<dyn DeviceEvent>, &'static AtomicBool);

impl DeviceStream for Hanging {
    fn key(&self) -> StreamKey {
        self.0.key()
    }

    fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError> {
        Ok(Box::new(HangingEvent(self.0.new_event()?, self.1)))
    }

    fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError> {
        let event: &mut HangingEvent = event.as_any_mut().downcast_mut().unwrap();
        self.0.record(&mut *event.0)
    }

    fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError> {
        Ok(Box::new(Self(self.0.clone(), self.1)))
    }
}

impl DeviceEvent for HangingEvent {
    fn ready(&self) -> Result<bool, DeviceError> {
        while self.1.load(Ordering::Relaxed) {
            std::thread::sleep(ms(10));
        }
        self.0.ready()
    }

    fn elapsed_ns(&self, later: &dyn DeviceEvent) -> Result<i64, DeviceError> {
        let later: &Self = later.as_any().downcast_ref().unwrap();
        self.0.elapsed_ns(&*later.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[test]
fn a_call_that_never_returns_stops_neither_the_writer_nor_the_program() {
    static HANGS: AtomicBool = AtomicBool::new(true);
    let stream = Hanging(SimDevice::new(0, SimClock::real()).stream(0), &HANGS);
    let recording = recording(ms(200));
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    (0..20).for_each(|_| step(&stream));
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert!(HANGS.load(Ordering::Relaxed), "it ends while the call hangs");
    assert_eq!((timeline.spans.len(), totals.unresolved), (20, 20));
    assert!(timeline.marks.iter().any(|mark| mark.text.contains("dflash-device hangs")), "{:?}", timeline.marks);
    HANGS.store(false, Ordering::Relaxed);
}
