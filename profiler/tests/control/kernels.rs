//! Kernel captures, with a tracer that only notes what it is asked.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dflash_profiler::timeline::Timeline;
use dflash_profiler::timeline::control::{Answer, Ask, KernelWindow};
use dflash_profiler::timeline::record::{Iteration, Mark, Severity};
use dflash_profiler::{Kind, Level, begin_iteration, set_level};

use crate::support::{FakeTracer, Loop, Run, until};

const SHORT: Duration = Duration::from_millis(4);

fn trained(_: u64) -> Kind {
    Kind::Train
}

fn capture(run: &Run, iterations: u64) -> PathBuf {
    match run.ask(Ask::Kernels { iterations, wait: true }) {
        Ok(Answer::File(file)) => file,
        other => panic!("{other:?}"),
    }
}

fn with_tracer(tracer: FakeTracer) -> (Run, Arc<FakeTracer>) {
    let run = Run::start();
    let tracer = Arc::new(tracer);
    run.profiler.kernel_capture(Arc::<FakeTracer>::clone(&tracer));
    (run, tracer)
}

fn of_lane<'a>(timeline: &'a Timeline, lane: &str) -> Vec<&'a Iteration> {
    let is = |i: &&Iteration| timeline.lanes[i.lane.0 as usize].name == lane;
    timeline.iterations.iter().filter(is).collect()
}

fn texts(marks: &[Mark]) -> Vec<&str> {
    marks.iter().map(|mark| mark.text.as_str()).collect()
}

#[test]
fn n_whole_iterations_of_the_drafter_lie_in_the_window() {
    let (run, tracer) = with_tracer(FakeTracer { slow_start: Duration::from_millis(20), ..FakeTracer::default() });
    let target = Loop::start(&run.profiler, "target:0", Duration::from_millis(1), trained);
    let drafter = Loop::start(&run.profiler, "drafter:0", SHORT, trained);
    until("both work", || target.done.load(Ordering::Relaxed) > 3 && drafter.done.load(Ordering::Relaxed) > 3);
    let file = capture(&run, 3);
    let window = KernelWindow::read(&file).unwrap();
    assert!(!tracer.running.load(Ordering::Relaxed));
    assert_eq!((window.lane.as_str(), window.asked, window.last), ("drafter:0", 3, Some(window.first + 2)));
    assert_eq!(file, run.run.path().join(format!("kernels-{}-3.json", window.first)));
    assert_eq!(window.lacks, ["the operators of loader", "operators of target:0"], "told at the begin, and at the end");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"traceEvents\":[]}");
    assert!(drafter.done.load(Ordering::Relaxed) > window.first, "the training went on");
    drop((target, drafter));
    let timeline = run.finish();
    let inside = of_lane(&timeline, "drafter:0")
        .into_iter()
        .filter(|i| i.begin_ns >= window.begin_ns && i.begin_ns + i.duration_ns.cast_signed() <= window.end_ns);
    let inside: Vec<u64> = inside.map(|i| i.number).collect();
    let wanted: Vec<u64> = (window.first..window.first + 3).collect();
    assert!(inside.starts_with(&wanted), "{inside:?}, {window:?}");
    let marks = texts(&timeline.marks);
    let (first, last) = (window.first, window.first + 2);
    let begins =
        format!("begins on drafter:0, iterations {first} to {last}, by test; it lacks the operators of loader");
    assert_eq!(marks[0], format!("kernel capture: {begins}"));
    let holds = format!("kernel capture: kernels-{first}-3.json holds iterations {first} to {last} of drafter:0; ");
    assert!(marks[1].starts_with(&holds), "{marks:?}");
    assert!(timeline.marks.iter().all(|mark| mark.severity == Severity::Info));
    let realtime = window.begin_unix_ns - window.begin_ns;
    assert!((realtime - (timeline.anchors[0].realtime_ns - timeline.anchors[0].monotonic_ns)).abs() < 1_000_000_000);
}

#[test]
fn warm_up_is_not_captured() {
    let (run, _tracer) = with_tracer(FakeTracer::default());
    let _lane = Loop::start(&run.profiler, "worker", SHORT, |n| if n < 40 { Kind::Warmup } else { Kind::Train });
    let file = run.profiler.capture_kernels(2).unwrap();
    let first: u64 = file.file_name().unwrap().to_str().unwrap().split('-').nth(1).unwrap().parse().unwrap();
    assert!(first >= 40, "{file:?}");
    until("it is written", || file.exists());
}

#[test]
fn the_busiest_lane_is_counted_where_there_is_no_drafter() {
    let (run, _tracer) = with_tracer(FakeTracer::default());
    let slow = Loop::start(&run.profiler, "slow", Duration::from_millis(40), trained);
    let fast = Loop::start(&run.profiler, "fast", Duration::from_millis(1), trained);
    let ahead = || fast.done.load(Ordering::Relaxed) > slow.done.load(Ordering::Relaxed) + 5;
    until("one is ahead", ahead);
    assert_eq!(KernelWindow::read(&capture(&run, 1)).unwrap().lane, "fast");
}

#[test]
fn one_at_a_time_and_no_file_is_overwritten() {
    let (run, tracer) = with_tracer(FakeTracer { held: true.into(), ..FakeTracer::default() });
    let _lane = Loop::start(&run.profiler, "drafter:0", SHORT, trained);
    let file = run.profiler.capture_kernels(1).unwrap();
    let said = run.refusal(Ask::Kernels { iterations: 5, wait: true });
    assert!(said.starts_with("a kernel capture runs: ") && said.ends_with("; one at a time"), "{said}");
    assert!(run.profiler.capture_kernels(5).is_err());
    tracer.held.store(false, Ordering::Relaxed);
    until("the first is written", || file.exists());
    until("and over", || run.profiler.capture_kernels(1).is_ok());
    assert_eq!(tracer.starts.load(Ordering::Relaxed), 2);
}

#[test]
fn without_wait_the_answer_comes_when_it_has_begun() {
    let (run, tracer) = with_tracer(FakeTracer { held: true.into(), ..FakeTracer::default() });
    let _lane = Loop::start(&run.profiler, "drafter:0", SHORT, trained);
    let Ok(Answer::File(file)) = run.ask(Ask::Kernels { iterations: 20, wait: false }) else { panic!() };
    assert!(tracer.starts.load(Ordering::Relaxed) == 1 && !file.exists(), "not written yet");
    tracer.held.store(false, Ordering::Relaxed);
    until("it comes", || file.exists() && KernelWindow::read(&file).is_ok());
}

#[test]
fn what_cannot_be_captured_is_said() {
    let run = Run::start();
    let ask = |iterations| run.refusal(Ask::Kernels { iterations, wait: true });
    assert_eq!(ask(1), "this training has no tracer of kernels");
    let tracer = Arc::new(FakeTracer::default());
    run.profiler.kernel_capture(Arc::<FakeTracer>::clone(&tracer));
    assert_eq!(ask(1), "there is no lane yet whose iterations could be counted");
    assert_eq!(ask(0), "0 iterations cannot be captured; take 1 to 10000");
    let lane = Loop::start(&run.profiler, "drafter:0", SHORT, trained);
    set_level(Level::Off);
    assert!(ask(1).starts_with("the level is off"));
    set_level(Level::Stages);
    tracer.fail_start.store(true, Ordering::Relaxed);
    assert_eq!(ask(1), "another tool holds the tracer");
    tracer.fail_start.store(false, Ordering::Relaxed);
    tracer.fail_stop.store(true, Ordering::Relaxed);
    assert_eq!(ask(1), "the disk is full");
    tracer.fail_stop.store(false, Ordering::Relaxed);
    assert!(capture(&run, 1).exists(), "a failure disables nothing");
    drop(lane);
    let marks = run.marks();
    let warnings: Vec<_> = marks.iter().filter(|mark| mark.severity == Severity::Warning).collect();
    let said: Vec<_> = warnings.iter().map(|mark| mark.text.as_str()).collect();
    let of = |text: &str| format!("kernel capture, by test: {text}");
    assert_eq!(said, [of("another tool holds the tracer"), of("the disk is full")]);
    let files = fs::read_dir(run.run.path()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.filter(|name| name.contains("kernels")).count(), 2, "only the good one left files");
}

#[test]
fn the_end_of_the_training_ends_a_capture() {
    let (run, tracer) = with_tracer(FakeTracer::default());
    let lane = Loop::start(&run.profiler, "drafter:0", SHORT, trained);
    let file = run.profiler.capture_kernels(10_000).unwrap();
    drop(lane);
    let marks = run.marks();
    assert!(file.exists() && !tracer.running.load(Ordering::Relaxed), "what there is, is written");
    let window = KernelWindow::read(&file).unwrap();
    assert!(window.last.is_none_or(|last| last < window.first + 9_999), "{window:?}");
    let last = marks.last().unwrap();
    assert!(last.severity == Severity::Warning && last.text.contains("cut short because"), "{}", last.text);
}

#[test]
fn a_lane_cannot_wait_for_itself() {
    let (run, _tracer) = with_tracer(FakeTracer::default());
    let lane = run.profiler.lane("drafter:0", "cpu");
    let _lane = lane.enter();
    let _iteration = begin_iteration(Kind::Train);
    assert!(run.profiler.capture_kernels(1).unwrap_err().starts_with("a lane's own thread cannot wait"));
}

#[test]
fn who_leaves_does_not_end_the_capture() {
    let (run, _tracer) = with_tracer(FakeTracer::default());
    let _lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(30), trained);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = std::os::unix::net::UnixStream::connect(run.socket()).unwrap();
            std::io::Write::write_all(&mut stream, b"{\"do\":\"kernels\",\"iterations\":3,\"wait\":true}\n").unwrap();
            std::io::Read::read_exact(&mut stream, &mut [0; 5]).unwrap();
        });
    });
    let is_trace = |name: String| name.starts_with("kernels-") && !name.contains("meta");
    let names = || fs::read_dir(run.run.path()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
    until("the trace is written", || names().any(is_trace));
}
