//! stages.csv, iterations.csv and figures.csv in other programs, with their default options: Python's csv, pandas, DuckDB;
//! and in our own reader. A module that is not installed is a test that is skipped, and says so; `make test` installs them
//! (scripts/test-tools), and DFLASH_REQUIRE_TOOLS=1 makes it a failure.
//!
//! `DFLASH_PYTHON` names the interpreter (default: `python3`).

use super::support::lacks_tools;
use dflash_reports::diff::Side;
use dflash_reports::timeline::record::{Anchor, DeviceTime, Iteration, Kind, Lane, Span, Totals};
use dflash_reports::timeline::{IterationRow, IterationsWriter, Manifest, RunDir, SegmentWriter, read_iterations};
use std::path::Path;
use std::process::Command;

/// Names that need quoting, and one that looks like a number of another country.
const STAGES: [&str; 4] = ["drafter.forward", "a,b", "say \"hi\"", "1,5"];
/// A country whose decimal point is a comma, if the machine knows it.
const COMMAS: &str = "de_DE.UTF-8";
const SCRIPT: &str = include_str!("other_readers.py");

fn record(directory: &Path) -> RunDir {
    let run = RunDir::create(&directory.join("runs"), "csv", Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let mut rows = IterationsWriter::open(&run.iterations_csv()).unwrap();
    stream.anchor(&Anchor { monotonic_ns: 0, realtime_ns: 1_796_040_000_000_000_000 });
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cuda:0".into(), rank: 0 });
    let mut now = 0_i64;
    for number in 0..40 {
        let begin_ns = now;
        let base =
            IterationRow { lane: "drafter:0".into(), device: "cuda:0".into(), iteration: number, ..Default::default() };
        let mut put = |stage: &str, ns: u64, device_ns: Option<u64>, tokens: Option<u64>| {
            let (stage, host_ns) = (stage.to_owned(), Some(ns));
            rows.write(&IterationRow { stage, host_ns, device_ns, tokens, ..base.clone() }).unwrap();
        };
        for (at, stage) in STAGES.iter().enumerate() {
            let duration_ns = 1_000_000 * (at as u64 + 1) + number * 777;
            // Only the first stage has device times.
            let device = (at == 0).then_some(DeviceTime { begin_ns: now, duration_ns: 3_000_000, stream: None });
            let (name, iteration, index, depth) = (stream.name(stage), Some(number), None, 0);
            stream.span(&Span { name, lane, iteration, index, depth, begin_ns: now, duration_ns, device }).unwrap();
            put(stage, duration_ns, device.map(|device| device.duration_ns), None);
            now += duration_ns as i64;
        }
        now += 5_000;
        let duration_ns = (now - begin_ns) as u64;
        put("residue", 5_000, None, None);
        put("total", duration_ns, None, Some(64));
        let (kind, cpu_ns, tokens) = (Kind::Train, None, Some(64));
        stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
    }
    rows.flush().unwrap();
    stream.end(&[], Totals::default()).unwrap();
    run
}

#[test]
fn every_reader_reads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.current_dir(dir.path()).args(["report", "--format", "csv", "-o", "out/"]).env("LC_ALL", COMMAS);
    assert!(command.status().unwrap().success());
    let out = dir.path().join("out");
    for file in ["stages.csv", "iterations.csv", "figures.csv"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(!text.to_lowercase().contains("nan") && !text.contains("inf,"), "{file}");
        assert!(!text.contains('\r') && text.ends_with('\n'));
    }
    let rows = read_iterations(&out.join("iterations.csv")).unwrap();
    assert_eq!(rows.len(), 40 * 6);
    let total: u64 = rows.iter().filter(|row| row.stage == "total").filter_map(|row| row.host_ns).sum();
    Side::read(&[out.join("iterations.csv")]).unwrap();
    Side::read(&[out.join("stages.csv")]).unwrap();
    for module in ["csv", "pandas", "duckdb"] {
        python(&out, module, total);
    }
}

/// Lets a module of Python read the files, and say what it found.
fn python(out: &Path, module: &str, total: u64) {
    let interpreter = std::env::var_os("DFLASH_PYTHON").unwrap_or_else(|| "python3".into());
    let there = Command::new(&interpreter).args(["-c", &format!("import {module}")]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return lacks_tools(
            &format!("the CSV files in {module}"),
            &format!("{} has no {module}", interpreter.display()),
        );
    }
    let total = total.to_string();
    let mut command = Command::new(&interpreter);
    command.args(["-c", SCRIPT, module, &total]).current_dir(out).env("LC_ALL", COMMAS);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{module}: {error}");
}
