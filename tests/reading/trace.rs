//! `dflash trace`, checked with the official classes where they are installed.

use super::support::{dflash, lacks_tools, recorded_run};
use dflash_reports::timeline::record::{Iteration, Kind, Lane, Span, Totals};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter, State, read};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const RECORDING: &str = "tests/data/recordings/h200";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the official classes say of a trace; `None`, with the reason printed, where they are not installed.
fn checked(trace: &Path) -> Option<Value> {
    let python = std::env::var("DFLASH_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(root().join("tests/check_trace.py")).arg(trace).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) => output,
        Ok(output) => {
            skip(&String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Err(error) => {
            skip(&format!("{python}: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(0), "{said}{}", String::from_utf8_lossy(&output.stdout));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn skip(why: &str) {
    lacks_tools("a trace in the official classes", why.trim_end());
}

#[test]
fn the_official_classes_find_what_our_reader_finds() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pftrace");
    let said = dflash(root(), &["trace", RECORDING, "-o", file.to_str().unwrap()]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let Some(found) = checked(&file) else { return };
    let timeline = read(&RunDir::open(root().join(RECORDING)).unwrap()).unwrap();
    let mut expected: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for span in &timeline.spans {
        let track = format!("{} < rank 0: h200", timeline.lane(span.lane).unwrap().name);
        let row = expected.entry((track, timeline.name(span.name).to_owned())).or_default();
        *row = (row.0 + 1, row.1 + span.duration_ns);
    }
    let slices = found["slices"].as_array().unwrap();
    let told = |slice: &Value| (slice["count"].as_u64().unwrap(), slice["ns"].as_u64().unwrap());
    for ((track, name), row) in &expected {
        let slice = slices.iter().find(|slice| slice["track"] == **track && slice["name"] == **name);
        assert_eq!(slice.map(told), Some(*row), "{name} on {track}");
    }
    let iterations = slices.iter().filter(|slice| slice["name"].as_str().unwrap().starts_with("iteration"));
    assert_eq!(iterations.map(|slice| told(slice).0).sum::<u64>(), timeline.iterations.len() as u64);
    let readings: u64 = found["counters"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
    assert_eq!(readings, timeline.samples.len() as u64);
    assert_eq!(found["flows"].as_u64(), Some(timeline.flows.len() as u64 / 2));
    assert_eq!(found["attributes"]["dflash.written"].as_u64(), Some(timeline.totals.written));
    assert_eq!(found["recovered"], false);
}

#[test]
fn a_part_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pftrace");
    for (part, sound) in [
        (&["--window", "20s..30s"][..], true),
        (&["--last", "2s", "--lane", "drafter:0"], true),
        (&["--rank", "0"], true),
        (&["--rank", "7"], false),
        (&["--window", "2m..1m"], false),
    ] {
        let arguments = [&["trace", RECORDING, "--force", "-o", file.to_str().unwrap()], part].concat();
        let said = dflash(root(), &arguments);
        assert_eq!(said.code, Some(if sound { 0 } else { 2 }), "{part:?}: {}", said.stderr);
        if sound {
            checked(&file);
        } else {
            assert_eq!(
                said.stderr.lines().filter(|line| line.starts_with("dflash: ") || line.starts_with("error: ")).count(),
                1
            );
        }
    }
}

#[test]
fn chrome_json_of_a_run() {
    let said = dflash(root(), &["trace", RECORDING, "--chrome", "--last", "1s"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let events: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    assert!(events.iter().any(|event| event["ph"] == "X" && event["name"] == "drafter.backward"));
    assert!(said.stdout.trim_end().ends_with(']'));
}

/// Cuts the end off, as a crash does; `state` is what the manifest says.
fn cut(dir: &Path, name: &str, state: State) -> RunDir {
    let run = recorded_run(dir, name, 1.0);
    let segment = run.timeline_dir().join("rank0-000001.dft");
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &bytes[..bytes.len() - 100]).unwrap();
    let mut manifest = run.manifest().unwrap();
    manifest.state = state;
    manifest.host = "elsewhere".into();
    run.write_manifest(&manifest).unwrap();
    run
}

#[test]
fn torn_and_live_runs_say_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for (name, state, word, torn) in [("torn", State::Died, "torn", true), ("live", State::Running, "goes on", false)] {
        let run = cut(dir.path(), name, state);
        let file = dir.path().join(name);
        let said = dflash(dir.path(), &["trace", run.path().to_str().unwrap(), "-o", file.to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.contains(word), "{}", said.stderr);
        if let Some(found) = checked(&file) {
            assert_eq!(found["recovered"], torn, "{name}: the last block of a live run may be in the making");
        }
    }
}

/// Reads a run again and again while it is being written.
#[test]
fn a_training_writes_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("runs"), "live", Manifest::default()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&run, &done));
        // Until the first block is there.
        while read(&run).unwrap().iterations.len() < 10 {
            std::thread::sleep(Duration::from_millis(2));
        }
        for round in 0..3 {
            let file = format!("{round}.pftrace");
            let said = dflash(dir.path(), &["trace", "-o", &file]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            assert!(said.stderr.contains("the run goes on"), "{}", said.stderr);
            if round == 0 {
                checked(&dir.path().join(file));
            }
            let said = dflash(dir.path(), &["flamegraph", "--format", "folded", "--last", "60s"]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            assert!(said.stdout.contains("drafter:0;drafter.forward "), "{}", said.stdout);
        }
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}

fn write_until(run: &RunDir, done: &AtomicBool) {
    let mut stream = SegmentWriter::create(run, 0, 1 << 16).unwrap();
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    let name = stream.name("drafter.forward");
    let mut number = 0;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..10 {
            let (begin_ns, iteration) = (1_000 + number as i64 * 1_000, Some(number));
            let (index, depth, duration_ns) = (None, 0, 900);
            stream.span(&Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device: None }).unwrap();
            let (kind, cpu_ns, tokens) = (Kind::Train, None, None);
            stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
            number += 1;
        }
        stream.flush(&[], Totals::default()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.end(&[], Totals::default()).unwrap();
}

#[test]
fn a_trace_is_not_written_over_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine"), "mine").unwrap();
    let recording = root().join(RECORDING);
    let said = dflash(dir.path(), &["trace", recording.to_str().unwrap(), "-o", "mine"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(std::fs::read_to_string(dir.path().join("mine")).unwrap(), "mine");
}
