//! What a report costs, over four sizes: the cost must grow as the timeline does. By hand, and optimised:
//! `cargo test --release -p dflash-reports --test reports -- --ignored --nocapture cost_by_size`

use dflash_reports::report::{Charts, Report, html, table};
use dflash_reports::text::Look;
use dflash_reports::timeline::record::{Flow, FlowEnd, Iteration, Kind, Lane, Span, Totals};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter};
use dflash_reports::window::Selection;
use std::path::Path;
use std::time::Instant;

const STAGES: [&str; 10] = ["wait", "upload", "anchors", "mask", "forward", "loss", "backward", "clip", "step", "log"];

/// A run of 4 lanes with 10 stages each; returns its bytes.
fn record(parent: &Path, iterations: u64) -> (RunDir, u64) {
    let run = RunDir::create(parent, &format!("{iterations}"), Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 64 << 20).unwrap();
    let lanes: Vec<_> = (0..4)
        .map(|i| stream.lane(&Lane { name: format!("drafter:{i}"), device: format!("cuda:{i}"), rank: 0 }))
        .collect();
    for number in 0..iterations {
        for (at, lane) in lanes.iter().copied().enumerate() {
            let begin = number as i64 * 40_000_000 + at as i64;
            let mut now = begin;
            for stage in STAGES {
                let name = stream.name(&format!("drafter.{stage}"));
                let duration_ns = 3_000_000 + (number * 7919 + now as u64 * 31) % 200_003;
                let (iteration, index, depth, device) = (Some(number), None, 0, None);
                stream.span(&Span { name, lane, iteration, index, depth, begin_ns: now, duration_ns, device }).unwrap();
                now += duration_ns as i64;
            }
            let end = if at == 0 { FlowEnd::Put } else { FlowEnd::Take };
            if at < 2 {
                stream.flow(&Flow { id: number, end, lane, time_ns: now }).unwrap();
            }
            let (kind, duration_ns, tokens) = (Kind::Train, (now - begin) as u64 + 1000, Some(64));
            stream
                .iteration(&Iteration { lane, number, kind, begin_ns: begin, duration_ns, cpu_ns: None, tokens })
                .unwrap();
        }
    }
    let bytes = stream.bytes();
    stream.end(&[], Totals::default()).unwrap();
    (run, bytes)
}

#[test]
#[ignore = "a minute; prints what docs/measurements.md may hold"]
fn cost_by_size() {
    let dir = tempfile::tempdir().unwrap();
    for iterations in [10_000, 20_000, 40_000, 80_000] {
        let (run, bytes) = record(dir.path(), iterations);
        let runs = [run];
        let mut line = format!("{:>6.1} MB, {:>9} spans:", bytes as f64 / 1e6, iterations * 40);
        let began = Instant::now();
        let timeline = dflash_reports::timeline::read(&runs[0]).unwrap();
        line += &format!(" read {:.2} s,", began.elapsed().as_secs_f64());
        drop(timeline);
        let began = Instant::now();
        let (report, merged) = Report::of_runs(&runs, &Selection::default()).unwrap();
        line += &format!(" read and gathered {:.2} s,", began.elapsed().as_secs_f64());
        let began = Instant::now();
        let text = table(&report, Look::default());
        line += &format!(" table {:.3} s,", began.elapsed().as_secs_f64());
        let began = Instant::now();
        let page = html(&report, &Charts::of(&report, &merged, &runs));
        line += &format!(" page {:.2} s ({} kB)", began.elapsed().as_secs_f64(), page.len() / 1000);
        assert_eq!(report.stages.lanes[0].iterations, iterations);
        assert!(text.contains("drafter.backward"));
        println!("{line}");
    }
}
