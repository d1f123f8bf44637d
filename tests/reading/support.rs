//! A recorded run, and the binary.

use dflash_reports::timeline::record::{Iteration, Kind, Lane, Span, Totals};
use dflash_reports::timeline::{IterationRow, IterationsWriter, Manifest, RunDir, SegmentWriter, State};
use std::path::Path;
use std::process::Command;

/// What a command said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `dflash` in a directory, without the user's own settings.
pub fn dflash(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.current_dir(directory).args(arguments).env_remove("DFLASH_RUNS").env_remove("NO_COLOR");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Stages of one drafter iteration, nanoseconds; `number` varies them a little.
fn stages(number: u64, factor: f64) -> [(&'static str, u64); 3] {
    let wobble = (number * 7919) % 101 * 1000;
    let backward = (20_000_000.0 * factor) as u64 + wobble;
    [("drafter.wait", 1_000_000 + wobble), ("drafter.forward", 9_000_000 + wobble), ("drafter.backward", backward)]
}

/// Records a finished run of 300 drafter iterations under `runs/`; `factor` slows drafter.backward down.
pub fn recorded_run(directory: &Path, name: &str, factor: f64) -> RunDir {
    let run = RunDir::create(&directory.join("runs"), name, Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let mut rows = IterationsWriter::open(&run.iterations_csv()).unwrap();
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    let mut now = 1_000_000_000_i64;
    for number in 0..300 {
        let begin_ns = now;
        for (stage, duration_ns) in stages(number, factor) {
            let name = stream.name(stage);
            let iteration = Some(number);
            let span = Span { name, lane, iteration, index: None, depth: 0, begin_ns: now, duration_ns, device: None };
            stream.span(&span).unwrap();
            rows.write(&row(number, stage, duration_ns)).unwrap();
            now += duration_ns as i64;
        }
        now += 100_000;
        let duration_ns = (now - begin_ns) as u64;
        let kind = Kind::Train;
        let cpu_ns = Some(duration_ns / 4);
        let iteration = Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens: Some(64) };
        stream.iteration(&iteration).unwrap();
        rows.write(&row(number, "residue", 100_000)).unwrap();
        rows.write(&row(number, "total", duration_ns)).unwrap();
    }
    rows.flush().unwrap();
    stream.end(&[], Totals { emitted: 1200, ..Totals::default() }).unwrap();
    finish(&run);
    run
}

fn row(iteration: u64, stage: &str, ns: u64) -> IterationRow {
    let (lane, device) = ("drafter:0".into(), "cpu".into());
    IterationRow { lane, device, iteration, stage: stage.into(), host_ns: Some(ns), ..IterationRow::default() }
}

fn finish(run: &RunDir) {
    let mut manifest = run.manifest().unwrap();
    manifest.state = State::Finished;
    manifest.ended_unix_ns = Some(manifest.started_unix_ns + 90_000_000_000);
    manifest.results.insert("tau".into(), 1.91.into());
    run.write_manifest(&manifest).unwrap();
}

/// Records a run whose lane, device and stages all have this name.
pub fn run_with_names(directory: &Path, name: &str) {
    let run = RunDir::create(&directory.join("runs"), "names", Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let lane = stream.lane(&Lane { name: name.into(), device: name.into(), rank: 0 });
    let span_name = stream.name(name);
    for number in 0..30 {
        let (begin_ns, iteration) = (number as i64 * 2_000, Some(number));
        let (index, depth, device) = (None, 0, None);
        let span = Span { name: span_name, lane, iteration, index, depth, begin_ns, duration_ns: 1_000, device };
        stream.span(&span).unwrap();
        let (kind, duration_ns, cpu_ns, tokens) = (Kind::Train, 2_000, None, None);
        stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
    }
    stream.end(&[], Totals::default()).unwrap();
    let mut manifest = run.manifest().unwrap();
    (manifest.host, manifest.name) = (name.into(), name.into());
    (manifest.state, manifest.outcome) = (State::Finished, Some(name.into()));
    run.write_manifest(&manifest).unwrap();
}

/// Says on stderr, past the test harness, which hides what a passing test prints, that a test did not run.
pub fn skipped(test: &str, why: &str) {
    // No stderr is no reason to fail.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED {test}: {why}\n").as_bytes());
}

/// The same for want of what scripts/test-tools installs, which is a failure where DFLASH_REQUIRE_TOOLS=1 says so.
pub fn lacks_tools(test: &str, why: &str) {
    let required = std::env::var("DFLASH_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{test} must run here (DFLASH_REQUIRE_TOOLS=1): {why}");
    skipped(test, why);
}
