//! Where CPU time goes, under the spans that were open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use dflash_profiler::timeline::read;
use dflash_profiler::timeline::record::{NameId, StackSample};
use dflash_profiler::{Kind, Profiler, begin_iteration, span};

use crate::profile::Sample;
use crate::support::{Recording, burn_cpu, until};

const A_WHILE: Duration = Duration::from_millis(400);

fn named<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().name(name.into()).spawn(body).unwrap()
}

/// Samples of a thread, and those of them that hold.
fn count(samples: &[Sample], thread: &str, holds: impl Fn(&Sample) -> bool) -> (u64, u64) {
    let own = || samples.iter().filter(|s| s.label("thread") == Some(thread));
    (own().map(|s| s.count).sum(), own().filter(|s| holds(s)).map(|s| s.count).sum())
}

#[track_caller]
fn assert_most((all, some): (u64, u64)) {
    assert!(all > 5 && some * 10 >= all * 8, "{some} of {all}");
}

#[test]
fn a_busy_thread_is_sampled_under_its_span() {
    let recording = Recording::start();
    let lane = recording.profiler.lane("drafter:0", "cpu");
    let (report, samples) = recording.profile(|| {
        let body = move || {
            let _lane = lane.enter();
            let _iteration = begin_iteration(Kind::Train);
            let _span = span!("drafter.forward");
            burn_cpu(A_WHILE);
        };
        named("busy", body).join().unwrap();
    });
    println!("{report}");
    let as_wanted = |s: &Sample| {
        s.label("lane") == Some("drafter:0") && s.label("span") == Some("drafter.forward") && s.has("burn_cpu")
    };
    assert_most(count(&samples, "busy", as_wanted));
    assert!(report.cpu_seconds > 0.05 && report.seconds > 0.1, "{report}");
    let rate = (report.samples + report.blocked) as f64 / report.cpu_seconds;
    assert!((report.achieved_hz - rate).abs() < 1e-6, "the rate is measured");
    assert!(report.achieved_hz > 5.0 && report.achieved_hz < 2_000.0, "{report}");
    assert!(report.threads >= 2 && report.own_threads >= 2, "{report:?}");
    assert!(report.handler_seconds > 0.0 && report.handler_seconds < report.cpu_seconds);
    assert!(samples.iter().all(|s| !s.label("thread").unwrap().starts_with("dflash-")), "not the profiler's own");
}

#[test]
fn a_backward_thread_works_for_the_lane_of_its_device() {
    let recording = Recording::start();
    let lanes = ["drafter:0", "drafter:1"].map(|name| recording.profiler.lane(name, &name.replace("drafter", "cuda")));
    let (send, receive) = channel::<()>();
    let (_, samples) = recording.profile(|| {
        let open = AtomicBool::new(false);
        let open = &open;
        thread::scope(|scope| {
            let [first, second] = lanes;
            let (go, gone) = channel::<()>();
            scope.spawn(move || {
                let _lane = first.enter();
                let _span = span!("drafter.forward");
                let _ = gone.recv();
            });
            scope.spawn(move || {
                let _lane = second.enter();
                let _span = span!("drafter.backward");
                open.store(true, Ordering::Release);
                let _ = receive.recv();
            });
            until(|| open.load(Ordering::Acquire));
            let threads = ["pt_autograd_0", "pt_autograd_1"].map(|name| named(name, || burn_cpu(A_WHILE)));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            drop((go, send));
        });
    });
    let (all, known) = count(&samples, "pt_autograd_0", |s| s.label("lane").is_some());
    assert!(all > 5 && known == 0, "that lane goes forward: {known} of {all}");
    let second = |s: &Sample| s.label("lane") == Some("drafter:1") && s.label("span") == Some("drafter.backward");
    assert_most(count(&samples, "pt_autograd_1", second));
}

#[test]
fn a_thread_that_a_lane_started_works_for_it() {
    let recording = Recording::start();
    let lane = recording.profiler.lane("loader", "cpu");
    let (_, samples) = recording.profile(|| {
        let body = move || {
            let _lane = lane.enter();
            let _span = span!("load.tokenize");
            // Named by nobody, as OpenMP's workers.
            thread::spawn(|| burn_cpu(A_WHILE)).join().unwrap();
        };
        named("loads", body).join().unwrap();
    });
    let helps = |s: &Sample| s.label("lane") == Some("loader") && s.label("span") == Some("load.tokenize");
    assert_most(count(&samples, "loads", helps));
}

#[test]
fn blocked_libraries_are_dropped_and_counted() {
    let me = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let recording = Recording::with(|options| {
        options.cpu.block = vec![me];
    });
    let (report, samples) = recording.profile(|| named("busy", || burn_cpu(A_WHILE)).join().unwrap());
    assert!(report.blocked > 5, "{report}");
    let (_, in_this_program) = count(&samples, "busy", |s| s.frames[0].ends_with("burn_cpu"));
    assert_eq!(in_this_program, 0);
}

#[test]
fn samples_go_into_the_timeline_while_it_is_on() {
    let recording = Recording::start();
    let profiler = &recording.profiler;
    profiler.cpu_start(500).unwrap();
    let error = profiler.pprof_start(99).unwrap_err();
    assert!(error.contains("only one of the two"), "{error}");
    assert!(profiler.cpu_start(99).is_err());
    assert!(profiler.pprof_stop(&recording.profile_file()).is_err(), "that is not what runs");
    let lane = profiler.lane("drafter:0", "cpu");
    named("busy", move || {
        let _lane = lane.enter();
        let _span = span!("drafter.forward");
        burn_cpu(A_WHILE);
    })
    .join()
    .unwrap();
    let report = profiler.cpu_stop().unwrap();
    assert!(report.samples > 5, "{report}");
    assert!(profiler.cpu_stop().is_err());
    let totals = profiler.finish();
    assert!(totals.emitted > report.samples, "each is a record, and so is the report: {totals:?}");
    assert_eq!(totals.emitted, totals.written + totals.dropped);
    let timeline = read(&recording.run).unwrap();
    assert_eq!(timeline.stacks.len() as u64, report.samples);
    let on_lane: Vec<_> = timeline.stacks.iter().filter(|s| s.lane.is_some()).collect();
    let as_wanted = |s: &&&StackSample| {
        let names = |ids: &[NameId]| ids.iter().map(|id| timeline.name(*id).to_owned()).collect::<Vec<_>>();
        names(&s.spans) == ["drafter.forward"] && names(&s.frames).iter().any(|frame| frame.contains("burn_cpu"))
    };
    assert_most((on_lane.len() as u64, on_lane.iter().filter(as_wanted).count() as u64));
}

#[test]
fn what_cannot_be_is_said() {
    let recording = Recording::start();
    for hz in [0, 10_001] {
        assert!(recording.profiler.cpu_start(hz).unwrap_err().contains("1 to 10000"));
    }
    let off = Profiler::disabled();
    assert!(off.cpu_start(99).is_err() && off.cpu_stop().is_err() && off.stacks().is_err());
    recording.profiler.pprof_start(99).unwrap();
    std::fs::write(recording.profile_file(), "mine").unwrap();
    let error = recording.profiler.pprof_stop(&recording.profile_file()).unwrap_err();
    assert!(error.contains("cpu.pb"), "{error}");
    assert_eq!(std::fs::read(recording.profile_file()).unwrap(), b"mine");
    recording.profiler.pprof_start(99).unwrap();
    recording.profiler.finish();
    assert!(recording.profiler.pprof_stop(&recording.profile_file()).is_err(), "it ended with the recording");
}

#[test]
fn on_and_off_again_while_lanes_work() {
    let recording = Recording::start();
    let over = AtomicBool::new(false);
    let samples: u64 = thread::scope(|scope| {
        for i in 0..2 {
            let (profiler, over) = (&recording.profiler, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _lane = profiler.lane(&format!("drafter:{i}"), "cpu").enter();
                    let _iteration = begin_iteration(Kind::Train);
                    for _ in 0..20 {
                        let _span = span!("drafter.forward");
                        burn_cpu(Duration::from_micros(100));
                    }
                }
            });
        }
        let cycles = (0..30).map(|_| {
            recording.profiler.cpu_start(1_000).unwrap();
            thread::sleep(Duration::from_millis(20));
            recording.profiler.stacks().unwrap();
            recording.profiler.cpu_stop().unwrap().samples
        });
        let samples = cycles.sum();
        over.store(true, Ordering::Relaxed);
        samples
    });
    assert!(samples > 0);
}
