//! What each request does.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dflash_profiler::timeline::control::{Answer, Ask, Error, Status};
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{Kind, Level, level};

use crate::support::{FakeTracer, Loop, Run, until};

fn status(run: &Run) -> Status {
    match run.ask(Ask::Status) {
        Ok(Answer::Status(status)) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn status_says_what_every_lane_does() {
    let run = Run::start();
    let lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(5), |_| Kind::Train);
    until("a block with records is written, and the lane is in its work", || {
        let status = status(&run);
        let lane = status.lanes.first();
        status.totals.written > 0 && lane.is_some_and(|lane| lane.iteration.is_some() && !lane.spans.is_empty())
    });
    let now = status(&run);
    assert_eq!((now.pid, now.rank, now.attempt), (std::process::id(), 0, 1));
    assert_eq!((now.run.as_str(), now.level.as_str()), (run.run.path().to_str().unwrap(), "stages"));
    let lane_now = &now.lanes[0];
    assert_eq!((lane_now.name.as_str(), lane_now.device.as_str()), ("drafter:0", "cpu"));
    assert!(lane_now.begun > 0 && lane_now.emitted > 0 && lane_now.dropped == 0, "{lane_now:?}");
    assert!(lane_now.spans.iter().all(|span| span.name == "test.work"), "{lane_now:?}");
    assert_eq!((now.trouble, now.cpu_hz, now.kernels, now.takes_requests), (None, None, None, false));
    assert!(now.cost.bytes > 0 && now.cost.process_cpu_ns > 0);
    drop(lane);
    until("the lane that ended is gone", || status(&run).lanes.is_empty());
    assert!(run.marks().is_empty(), "looking leaves no mark");
}

#[test]
fn what_stopped_the_recording_is_told_to_who_asks() {
    let run = Run::with(|options| options.stream.segment_bytes = 1);
    let _lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(5), |_| Kind::Train);
    std::fs::rename(run.run.timeline_dir(), run.run.path().join("gone")).unwrap();
    until("somebody notices", || status(&run).trouble.is_some());
    let before = status(&run);
    let trouble = before.trouble.unwrap();
    assert!(trouble.contains("rank0-") && Some(trouble) == run.profiler.trouble());
    until("the training goes on", || status(&run).lanes[0].begun > before.lanes[0].begun + 3);
    assert!(status(&run).cost.bytes >= before.cost.bytes, "what was written is not forgotten");
}

#[test]
fn the_level_changes_and_says_who_changed_it() {
    let run = Run::start();
    let set = |level: &str| run.ask(Ask::Level { level: level.into() }).unwrap();
    assert_eq!(set("layers"), Answer::Done("level: stages -> layers, by test".into()));
    assert_eq!(level(), Level::Layers);
    assert_eq!(set("layers"), Answer::Done("level: layers already".into()));
    set("off");
    assert_eq!(level(), Level::Off);
    let wrong = run.refusal(Ask::Level { level: "everything".into() });
    assert_eq!(wrong, "there is no level \"everything\"; take off, stages or layers");
    let marks: Vec<_> = run.marks().into_iter().map(|mark| (mark.severity, mark.text)).collect();
    let info = |text: &str| (Severity::Info, text.to_owned());
    assert_eq!(marks, [info("level: stages -> layers, by test"), info("level: layers -> off, by test")]);
}

#[test]
fn marks_are_kept_as_they_are() {
    let run = Run::start();
    let texts = ["lr lowered".to_owned(), "a;b\u{1b}[2J\n 7".to_owned(), "ü".repeat(5_000)];
    for text in &texts {
        run.ask(Ask::Mark { text: text.clone(), warning: text.len() > 100 }).unwrap();
    }
    assert_eq!(run.refusal(Ask::Mark { text: " \n".into(), warning: false }), "a mark needs a text");
    let marks = run.marks();
    assert_eq!(marks.iter().map(|mark| &mark.text).collect::<Vec<_>>(), texts.iter().collect::<Vec<_>>());
    assert_eq!(marks.iter().filter(|mark| mark.severity == Severity::Warning).count(), 1);
}

#[test]
fn a_training_that_does_not_look_is_not_waited_for() {
    let run = Run::start();
    for ask in [Ask::Stop, Ask::Checkpoint { wait: true }] {
        assert_eq!(run.refusal(ask), "this training takes no such requests");
    }
    assert!(run.marks().is_empty());
}

#[test]
fn a_checkpoint_is_asked_for_and_answered() {
    let run = Run::start();
    let requests = run.profiler.requests();
    assert!(status(&run).takes_requests && !requests.take_checkpoint() && !requests.stop());
    thread::scope(|scope| {
        let answer = scope.spawn(|| run.ask(Ask::Checkpoint { wait: true }));
        until("the request arrives", || requests.take_checkpoint());
        assert!(!requests.take_checkpoint(), "once");
        requests.checkpoint_written(Ok("/somewhere/step-000007".into()));
        assert_eq!(answer.join().unwrap().unwrap(), Answer::File("/somewhere/step-000007".into()));
        let failed = scope.spawn(|| run.refusal(Ask::Checkpoint { wait: true }));
        until("the request arrives", || requests.take_checkpoint());
        requests.checkpoint_written(Err("the disk is full".into()));
        assert_eq!(failed.join().unwrap(), "the disk is full");
    });
    assert!(matches!(run.ask(Ask::Checkpoint { wait: false }), Ok(Answer::Done(_))));
    assert!(requests.take_checkpoint());
    run.ask(Ask::Stop).unwrap();
    assert!(requests.stop());
    let texts: Vec<String> = run.marks().into_iter().map(|mark| mark.text).collect();
    let asked = "checkpoint: asked for, by test";
    assert_eq!(texts, [asked, asked, asked, "stop: asked for, by test"]);
}

#[test]
fn who_waits_learns_that_the_training_has_ended() {
    let run = Run::start();
    let requests = run.profiler.requests();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| run.ask(Ask::Checkpoint { wait: true }));
        until("the request arrives", || requests.take_checkpoint());
        run.profiler.finish();
        // Told so, or cut off: never left waiting.
        let told = waiting.join().unwrap().unwrap_err();
        assert!(matches!(told, Error::Refused(_) | Error::Lost { .. }), "{told:?}");
    });
}

#[test]
fn several_requests_go_over_one_connection() {
    let run = Run::start();
    let mut client = run.client();
    for i in 0..50 {
        let level = if i % 2 == 0 { "layers" } else { "stages" };
        assert!(matches!(client.ask(Ask::Level { level: level.into() }, &mut |_| {}), Ok(Answer::Done(_))));
        assert!(matches!(client.ask(Ask::Level { level: "x".into() }, &mut |_| {}), Err(Error::Refused(_))));
    }
    assert_eq!(run.marks().len(), 50);
}

#[test]
fn a_sampling_for_some_seconds_does_not_stop_somebody_elses() {
    let run = Run::start();
    thread::scope(|scope| {
        let timed = scope.spawn(|| run.refusal(Ask::Cpu { seconds: 3_000.0, hz: 20 }));
        until("it samples", || status(&run).cpu_hz == Some(20));
        assert!(matches!(run.ask(Ask::CpuStop), Ok(Answer::Cpu(_))));
        run.ask(Ask::CpuStart { hz: 30 }).unwrap();
        // It notices, and leaves alone what is not its own.
        assert_eq!(timed.join().unwrap(), "somebody else has stopped this CPU sampling before its time");
        assert_eq!(status(&run).cpu_hz, Some(30));
    });
    assert!(matches!(run.ask(Ask::CpuStop), Ok(Answer::Cpu(report)) if report.asked_hz == 30));
}

#[test]
fn who_is_being_answered_when_the_run_ends_hears_the_answer() {
    let run = Run::start();
    thread::scope(|scope| {
        let sampling = scope.spawn(|| run.ask(Ask::Cpu { seconds: 3_000.0, hz: 20 }));
        until("it samples", || status(&run).cpu_hz == Some(20));
        run.profiler.finish();
        let answer = sampling.join().unwrap();
        assert!(matches!(&answer, Ok(Answer::Cpu(report)) if report.asked_hz == 20), "{answer:?}");
    });
    // As the one who asked for that end, of a training that ends the moment it is asked to.
    drop(run);
    for round in 0..10 {
        let run = Run::start();
        let requests = run.profiler.requests();
        let client = &mut run.client();
        thread::scope(|scope| {
            scope.spawn(|| {
                until("it is asked", || requests.stop());
                run.profiler.finish();
            });
            let answer = client.ask(Ask::Stop, &mut |_| {});
            assert!(matches!(answer, Ok(Answer::Done(_))), "round {round}: {answer:?}");
        });
    }
}

#[test]
fn what_the_threads_cost_that_come_and_go_is_in_the_timeline() {
    let run = Run::with(|options| options.sample_every = Some(Duration::from_millis(20)));
    run.profiler.kernel_capture(Arc::new(FakeTracer::default()));
    let lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(2), |_| Kind::Train);
    run.ask(Ask::CpuStart { hz: 50 }).unwrap();
    until("a capture is possible", || run.ask(Ask::Kernels { iterations: 2, wait: true }).is_ok());
    run.ask(Ask::CpuStop).unwrap();
    drop(lane);
    let timeline = run.finish();
    for name in ["profiler.control.cpu", "profiler.kernels.cpu", "profiler.sampler.cpu"] {
        let id = timeline.counters.iter().position(|c| c.name == name).unwrap_or_else(|| panic!("no {name}"));
        let values: Vec<f64> = timeline.samples.iter().filter(|s| s.counter.0 == id as u32).map(|s| s.value).collect();
        assert!(values.last().is_some_and(|last| *last > 0.0), "{name}: {values:?}");
        assert!(values.is_sorted(), "it only grows, also when threads end: {name}: {values:?}");
    }
}
