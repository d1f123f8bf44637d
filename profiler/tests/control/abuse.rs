//! Clients that hang, flood and lie: the run goes on, and so do the others.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use dflash_profiler::Kind;
use dflash_profiler::timeline::control::{Answer, Ask, LONGEST_REQUEST};

use crate::support::{LONG, Loop, Run, until};

/// Sends bytes as they are, and reads what comes until the run hangs up.
fn raw(run: &Run, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(run.socket()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // The run may hang up before it has read everything.
    let _ = stream.write_all(bytes);
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    said
}

#[test]
fn a_client_per_request_a_thousand_times() {
    let run = Run::start();
    let lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(1), |_| Kind::Train);
    for i in 0..1000 {
        let answer = run.ask(Ask::Mark { text: format!("mark {i}"), warning: false }).unwrap();
        assert_eq!(answer, Answer::Done("marked".into()));
    }
    drop(lane);
    let marks = run.marks();
    assert_eq!(marks.len(), 1000);
    assert!((0..1000).all(|i| marks[i].text == format!("mark {i}")), "in order");
}

#[test]
fn garbage_is_answered_in_words() {
    let run = Run::start();
    let garbage =
        [&b"\n"[..], b"hello\n", b"{\"do\":\"dance\"}\n", b"\xff\xfe\x00\n", b"{\"do\":\"level\",\"level\":7}\n"];
    for bytes in garbage {
        assert!(raw(&run, bytes).starts_with("{\"error\":\"not a request: "), "{bytes:?}");
    }
    let name = "n".repeat(10_000);
    let said = raw(&run, format!("{{\"do\":\"{name}\"}}\n").as_bytes());
    assert!(said.starts_with("{\"error\":\"not a request"), "{said}");
    let long = raw(&run, &vec![b'x'; LONGEST_REQUEST + 1]);
    assert_eq!(long, "{\"error\":\"a request has at most 65536 bytes\"}\n");
    assert!(run.ask(Ask::Status).is_ok());
    assert!(run.marks().is_empty());
}

#[test]
fn ten_kilobytes_of_name() {
    let run = Run::start();
    let (name, level) = ("\u{1b}ü;".repeat(3_000), "l".repeat(10_000));
    let said = run.refusal(Ask::Level { level });
    assert!(said.len() > 10_000 && said.starts_with("there is no level"), "it is said as it is");
    let mut client = dflash_profiler::timeline::control::Client::connect(&run.run, 0, &name).unwrap();
    client.ask(Ask::Level { level: "off".into() }, &mut |_| {}).unwrap();
    let text = &run.marks()[0].text;
    assert_eq!(*text, format!("level: stages -> off, by {}", "ü".repeat(32)), "who asked, in few plain letters");
}

#[test]
fn half_a_line_then_silence_is_hung_up_on() {
    let run = Run::start();
    let mut stream = UnixStream::connect(run.socket()).unwrap();
    stream.write_all(b"{\"do\":\"stat").unwrap();
    assert!(run.ask(Ask::Status).is_ok(), "meanwhile others are served");
    stream.set_read_timeout(Some(LONG)).unwrap();
    // Not one read: a process that was stopped meanwhile is told that it was interrupted.
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "the run hangs up, long before the test would");
}

#[test]
fn clients_that_hang_give_up_their_seats() {
    let run = Run::start();
    let lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(1), |_| Kind::Train);
    let hanging: Vec<_> = (0..200).map(|_| UnixStream::connect(run.socket()).unwrap()).collect();
    for i in 0..20 {
        assert!(run.ask(Ask::Status).is_ok(), "{i}");
    }
    let before = lane.done.load(std::sync::atomic::Ordering::Relaxed);
    until("the training goes on", || lane.done.load(std::sync::atomic::Ordering::Relaxed) > before);
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let clients = threads.filter(|task| {
        let comm = std::fs::read_to_string(task.as_ref().unwrap().path().join("comm")).unwrap_or_default();
        comm.trim() == "dflash-client"
    });
    assert!(clients.count() < 64, "seats are few");
    drop(hanging);
}

#[test]
fn a_flood_is_slowed_down_and_the_training_is_not() {
    let run = Run::start();
    let lane = Loop::start(&run.profiler, "drafter:0", Duration::from_millis(1), |_| Kind::Train);
    let line = b"{\"do\":\"status\"}\n".repeat(200);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut stream = UnixStream::connect(run.socket()).unwrap();
                stream.set_write_timeout(Some(LONG)).unwrap();
                // Sends without reading: the answers fill the socket, and the run hangs up.
                while stream.write_all(&line).is_ok() {}
            });
        }
        let before = lane.done.load(std::sync::atomic::Ordering::Relaxed);
        until("the training goes on", || lane.done.load(std::sync::atomic::Ordering::Relaxed) > before + 100);
        until("somebody else is served", || run.ask(Ask::Status).is_ok());
    });
    drop(lane);
    let timeline = run.finish();
    assert_eq!(timeline.totals.dropped, 0);
}

#[test]
fn a_client_that_leaves_in_the_middle_of_an_answer() {
    let run = Run::start();
    let _requests = run.profiler.requests();
    for _ in 0..20 {
        let mut stream = UnixStream::connect(run.socket()).unwrap();
        stream.write_all(b"{\"do\":\"checkpoint\",\"wait\":true}\n").unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert_eq!(line, "{\"progress\":\"waiting for the step that runs to end\"}\n");
    }
    assert!(run.ask(Ask::Status).is_ok());
    assert_eq!(run.marks().len(), 20);
}
