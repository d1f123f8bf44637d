//! Reading while a training writes: every answer is about what was there at that moment, and says that it goes on.

use super::support::dflash;
use dflash_reports::timeline::record::{Anchor, Iteration, Kind, Lane, Span, Totals};
use dflash_reports::timeline::{IterationRow, IterationsWriter, Manifest, RunDir, SegmentWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes iterations as fast as it is read, until it is told to stop; segments are small, so that they rotate.
fn write(run: &RunDir, stop: &AtomicBool) {
    let mut stream = SegmentWriter::create(run, 0, 1 << 14).unwrap();
    let mut rows = IterationsWriter::open(&run.iterations_csv()).unwrap();
    stream.anchor(&Anchor { monotonic_ns: 0, realtime_ns: 1_796_040_000_000_000_000 });
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    for number in 0.. {
        let (begin_ns, duration_ns, iteration) = (number as i64 * 1_000_000, 900_000, Some(number));
        let name = stream.name("drafter.forward");
        let (index, depth, device) = (None, 0, None);
        stream.span(&Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device }).unwrap();
        let (kind, cpu_ns, tokens) = (Kind::Train, None, Some(8));
        let duration_ns = 1_000_000;
        stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
        let row = IterationRow { lane: "drafter:0".into(), iteration: number, host_ns: Some(1), ..Default::default() };
        rows.write(&row).unwrap();
        if number % 50 == 49 {
            stream.flush(&[], Totals::default()).unwrap();
            rows.flush().unwrap();
            // On a machine that does other things, too, what there is to read must not outgrow who reads it.
            std::thread::sleep(Duration::from_millis(if number < 5_000 { 1 } else { 20 }));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    stream.end(&[], Totals::default()).unwrap();
}

#[test]
fn every_form_answers_while_a_training_writes() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("runs"), "live", Manifest::default()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&run, &stop));
        for (seen, format) in ["table", "json", "md", "html", "csv"].into_iter().cycle().take(15).enumerate() {
            let out = if format == "csv" { "out/" } else { "out.txt" };
            let part: &[&str] = if seen % 2 == 0 { &[] } else { &["--last", "50ms"] };
            let said = dflash(dir.path(), &[&["report", "--format", format, "-o", out, "--force"], part].concat());
            assert_eq!(said.code, Some(0), "{format}: {}", said.stderr);
            assert!(!said.stderr.contains("should not"), "{format}: {}", said.stderr);
        }
        let text = dflash(dir.path(), &["report"]).stdout;
        assert!(text.contains("running") && text.contains("warning: the timeline has no end yet"), "{text}");
        let count = || dflash(dir.path(), &["dump", "--totals"]).stdout;
        let (before, begin) = (count(), Instant::now());
        while count() == before {
            assert!(begin.elapsed() < PATIENCE, "it is not written to any more");
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    assert!(!dflash(dir.path(), &["report"]).stdout.contains("warning"), "ended, and whole");
}
