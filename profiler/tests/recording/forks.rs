//! Children and programs that the recorded process starts have no part in its recording.

use std::time::Duration;

use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{Kind, Level, begin_iteration, span};

use crate::support::Recording;

#[test]
fn a_forked_child_writes_nothing_and_ends() {
    let recording = Recording::with(|options| {
        options.write_every = Duration::from_millis(5);
        options.level = Level::Layers;
    });
    let lane = recording.profiler.lane("a", "cpu").enter();
    let step = || {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("step");
    };
    step();
    let open = span!("around.the.fork");
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let mut on_device = Some(span!("on.a.device", &stream));
    let before = stream.records();
    for _ in 0..3 {
        let profiler = recording.profiler.clone();
        let code = dflash_sys::fork_and_wait(Duration::from_secs(120), || {
            // A child that goes on as if nothing had happened.
            let off = dflash_profiler::level() == Level::Off;
            (0..1_000).for_each(|_| step());
            drop(on_device.take());
            let untouched = stream.records() == before;
            profiler.mark(Severity::Info, "of the child");
            u8::from(off && untouched && profiler.finish() == dflash_profiler::Totals::default())
        });
        assert_eq!(code.unwrap(), 1);
    }
    drop(on_device);
    drop(open);
    step();
    let sleep = std::process::Command::new("true").status().unwrap();
    assert!(sleep.success());
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), timeline.marks.len()), (4, 2, 0));
    assert_eq!(totals.dropped, 0);
}

#[test]
fn a_program_that_is_started_does_not_get_the_stream() {
    let recording = Recording::start(Level::Stages);
    let listed = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    assert!(listed.status.success());
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(!listed.contains(".dft") && !listed.contains("iterations.csv"), "{listed}");
    recording.finish();
}
