//! The recorded times against a clock of our own.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::read_iterations;
use dflash_profiler::{Kind, Level, Stat, begin_iteration, span, take_stats};

use crate::support::Recording;

const STEPS: usize = 40;
const PLANTED: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

fn work(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

fn target(queue: &SyncSender<usize>) {
    for batch in 0..STEPS {
        let _iteration = begin_iteration(Kind::Train);
        {
            let _span = span!("target.forward");
            work(3);
        }
        let _span = span!("target.put");
        queue.send(batch).unwrap();
    }
}

/// What the drafter's thread saw, by clocks of its own.
struct Seen {
    /// Wall time of the loop.
    wall: Duration,
    /// Time in the sleeps that were planted outside of every span, and in drafter.loss.
    planted: [Duration; 2],
    stats: Vec<Stat>,
    /// How far the recorded iterations' sum is from the wall time, as a share of it.
    off: f64,
}

fn drafter(queue: &Receiver<usize>, outside: Duration, in_loss: Duration) -> Seen {
    let mut planted = [Duration::ZERO; 2];
    let begin = Instant::now();
    for _ in 0..STEPS {
        let _iteration = begin_iteration(Kind::Train);
        {
            let _span = span!("drafter.wait");
            queue.recv().unwrap();
        }
        {
            let _span = span!("drafter.forward");
            work(1);
        }
        planted[0] += sleep(outside);
        let _span = span!("drafter.loss");
        work(1);
        planted[1] += sleep(in_loss);
    }
    Seen { wall: begin.elapsed(), planted, stats: take_stats(), off: f64::NAN }
}

/// Sleeps; how long it really took, which on a busy machine is longer.
fn sleep(duration: Duration) -> Duration {
    let begin = Instant::now();
    if !duration.is_zero() {
        thread::sleep(duration);
    }
    begin.elapsed()
}

impl Seen {
    fn mean_ms(&self, name: &str) -> f64 {
        self.stats.iter().find(|stat| stat.name == name).unwrap().mean_ms()
    }

    fn planted_ms(&self, place: usize) -> f64 {
        self.planted[place].as_secs_f64() * 1e3 / STEPS as f64
    }
}

/// A thread that is put aside between two spans or two iterations has time that nothing covers: a busy machine does that now
/// and then, but what is wrong is so each time.
fn once_undisturbed(outside: Duration, in_loss: Duration, is_right: impl Fn(&Seen) -> bool) {
    let begin = Instant::now();
    loop {
        let seen = train(outside, in_loss);
        if seen.off < 0.005 && is_right(&seen) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{:?}; off by {}: {:?}", seen.planted, seen.off, seen.stats);
    }
}

/// Runs both loops on threads of their own, and checks all sums.
fn train(outside: Duration, in_loss: Duration) -> Seen {
    let recording = Recording::start(Level::Stages);
    let (put, take) = sync_channel(2);
    let [target_lane, drafter_lane] = ["target:0", "drafter:0"].map(|name| recording.profiler.lane(name, "cpu"));
    let producer = thread::spawn(move || {
        let _lane = target_lane.enter();
        target(&put);
    });
    let consumer = thread::spawn(move || {
        let _lane = drafter_lane.enter();
        drafter(&take, outside, in_loss)
    });
    producer.join().unwrap();
    let mut seen = consumer.join().unwrap();
    let recorded = check_sums(&recording, &seen);
    seen.off = (recorded as f64 / seen.wall.as_nanos() as f64 - 1.0).abs();
    seen
}

/// The timeline, iterations.csv and the lane's own stats say the same; nanoseconds of all iterations.
fn check_sums(recording: &Recording, seen: &Seen) -> u64 {
    let (timeline, _) = recording.finish();
    let lane = timeline.lanes.iter().position(|l| l.name == "drafter:0").unwrap() as u32;
    let of_lane = timeline.iterations.iter().filter(|i| i.lane.0 == lane);
    let recorded: u64 = of_lane.map(|i| i.duration_ns).sum();
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    let sum = |stage: &str| -> u64 {
        rows.iter().filter(|r| r.lane == "drafter:0" && r.stage == stage).filter_map(|r| r.host_ns).sum()
    };
    let stages = ["drafter.wait", "drafter.forward", "drafter.loss", "residue"];
    assert_eq!(sum("total"), recorded);
    assert_eq!(stages.map(sum).iter().sum::<u64>(), recorded, "stages and residue add up to 100 %");
    assert_eq!(seen.stats.iter().map(|s| s.name).collect::<Vec<_>>(), [&stages[..], &["total"]].concat());
    for stat in &seen.stats {
        let (by_lane, by_writer) = (stat.total.as_nanos() as f64, sum(stat.name) as f64);
        assert!((by_lane - by_writer).abs() < 0.001 * recorded as f64, "{stat:?}, iterations.csv: {by_writer} ns");
        assert_eq!(stat.count, STEPS as u64);
    }
    recorded
}

#[test]
fn iterations_add_up_to_the_wall_time_and_residue_is_small() {
    once_undisturbed(Duration::ZERO, Duration::ZERO, |seen| {
        let waits_for_the_slower_target = seen.mean_ms("drafter.wait") > 0.1;
        seen.mean_ms("residue") < 0.02 * seen.mean_ms("total") && waits_for_the_slower_target
    });
}

#[test]
fn a_sleep_outside_every_span_is_residue() {
    once_undisturbed(PLANTED, Duration::ZERO, |seen| {
        let (residue, planted) = (seen.mean_ms("residue"), seen.planted_ms(0));
        assert!(planted >= 20.0, "planted {planted} ms");
        (residue - planted).abs() < 0.02 * planted && seen.mean_ms("drafter.loss") < residue / 2.0
    });
}

#[test]
fn a_sleep_inside_a_stage_is_that_stage() {
    once_undisturbed(Duration::ZERO, PLANTED, |seen| {
        let (loss, planted) = (seen.mean_ms("drafter.loss"), seen.planted_ms(1));
        assert!(planted >= 20.0 && loss > planted, "{loss} ms, planted {planted}");
        loss < 1.5 * planted && seen.mean_ms("residue") < 0.02 * planted
    });
}

#[test]
fn times_are_on_the_monotonic_clock() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let before = dflash_sys::monotonic_ns();
    {
        let _span = span!("clock.check");
        work(1300);
    }
    let after = dflash_sys::monotonic_ns();
    drop(lane);
    let (timeline, _) = recording.finish();
    let span = timeline.spans[0];
    let end = span.begin_ns + span.duration_ns as i64;
    // The map from ticks may be off by its calibration; a wrong clock would be off by far more.
    let slack = 100_000;
    assert!(before - slack < span.begin_ns && end < after + slack, "{span:?}, not in {before} to {after}");
    assert!(span.duration_ns + slack.unsigned_abs() > 1_300_000_000, "{span:?}");
    let anchor = timeline.anchors[0];
    let date = anchor.realtime_ns + (after - anchor.monotonic_ns);
    assert!((dflash_sys::realtime_ns() - date).abs() < 60_000_000_000, "the anchor dates the recording");
}

#[test]
fn an_iteration_knows_its_threads_cpu_time() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    // By the same clock, inside of the iteration and around it: what a host takes from a virtual machine counts as well.
    let cpu_of = |body: &dyn Fn()| {
        let around = dflash_sys::thread_cpu_ns();
        let iteration = begin_iteration(Kind::Train);
        let begin = dflash_sys::thread_cpu_ns();
        body();
        let inside = dflash_sys::thread_cpu_ns() - begin;
        drop(iteration);
        inside..=dflash_sys::thread_cpu_ns() - around
    };
    let sleeps = cpu_of(&|| work(30));
    let works = cpu_of(&|| {
        let begin = dflash_sys::thread_cpu_ns();
        while dflash_sys::thread_cpu_ns() - begin < 30_000_000 {}
    });
    drop(lane);
    let (timeline, _) = recording.finish();
    let cpu: Vec<u64> = timeline.iterations.iter().filter_map(|i| i.cpu_ns).collect();
    assert!(sleeps.contains(&cpu[0]) && works.contains(&cpu[1]), "{cpu:?}, not in {sleeps:?} and {works:?}");
}
