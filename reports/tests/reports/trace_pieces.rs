//! A trace that is exported piece by piece says what one says whose recording stands in memory.

use crate::busy::Busy;
use crate::streamed::most_resident_mb;
use crate::trace_reader::{Trace, read as read_trace};
use dflash_reports::sources::read_part;
use dflash_reports::timeline::record::{Iteration, Kind, Lane, OpenSpan, Span, Totals};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter};
use dflash_reports::trace::{Counts, Options, Source, chrome, perfetto};
use dflash_reports::window::Selection;
use std::path::Path;

/// Both forms of a source: what a reader finds, and the events, which may stand in another order.
fn exported(source: &Source<'_>, options: &Options) -> (Trace, Vec<String>, [Counts; 2]) {
    let (mut trace, mut json) = (Vec::new(), Vec::new());
    let counts = perfetto(source, options, &mut trace).unwrap();
    let (as_chrome, _) = chrome(source, options, None, &mut json).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let mut events: Vec<String> = events.iter().map(ToString::to_string).collect();
    events.sort_unstable();
    (read_trace(&trace), events, [counts, as_chrome])
}

/// In memory and in pieces of so many records; returns how many slices were compared.
fn same(run: &RunDir, selection: &Selection, records: u64) -> u64 {
    let (timeline, window) = read_part(run, selection).unwrap();
    let options = Options { window, name: run.name(), ..Options::default() };
    let (trace, events, counts) = exported(&Source::memory(&timeline), &options);
    let (source, window) = Source::open(run, selection).unwrap();
    assert_eq!(window, options.window, "{selection:?}");
    let (in_pieces, its_events, its_counts) = exported(&source.in_pieces_of(records), &options);
    assert_eq!(its_counts, counts, "{selection:?} by {records}");
    let odd = in_pieces.slices.iter().zip(&trace.slices).find(|(its, whole)| its != whole);
    assert_eq!((odd, in_pieces.slices.len()), (None, trace.slices.len()), "{selection:?} by {records}");
    let sorted = |mut instants: Vec<(String, u64)>| {
        instants.sort_unstable();
        instants
    };
    assert!(sorted(in_pieces.instants) == sorted(trace.instants), "{selection:?} by {records}");
    assert_eq!(in_pieces.counters, trace.counters);
    assert_eq!((in_pieces.puts.len(), in_pieces.takes.len()), (trace.puts.len(), trace.takes.len()));
    assert_eq!((in_pieces.attributes, in_pieces.torn), (trace.attributes, trace.torn));
    let odd = its_events.iter().zip(&events).find(|(its, whole)| its != whole);
    assert_eq!(odd, None, "{selection:?} by {records}");
    counts[0].slices
}

#[test]
fn of_several_segments_ranks_and_lanes() {
    let dir = tempfile::tempdir().unwrap();
    let (iterations, bytes) = (100, u64::MAX);
    let busy = Busy { ranks: 2, pairs: 2, segment_bytes: 70_000, iterations, bytes, restart_after: 40 };
    let (run, _) = busy.write(dir.path());
    for records in [900, 1 << 20] {
        assert!(same(&run, &Selection::default(), records) > 3_000);
    }
    let window = Some("1s..2s".parse().unwrap());
    let lanes = Selection { window, lanes: vec!["drafter:1".into()], ranks: vec![1], ..Selection::default() };
    assert!(same(&run, &lanes, 300) > 50);
    let last = Some("900ms".parse().unwrap());
    same(&run, &Selection { last, ..Selection::default() }, 100);
}

#[test]
fn of_a_recording() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings");
    let run = RunDir::open(recordings.join("h200-device")).unwrap();
    assert!(same(&run, &Selection::default(), 6_000) > 1_000);
}

/// One slice lies around a hundred pieces, and others begin where a piece does.
#[test]
fn what_lasts_longer_than_a_piece_is_one_slice() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), "long", Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    let (name, millisecond) = (stream.name("drafter.step"), 1_000_000);
    for at in 0..1_000_u64 {
        let (begin_ns, duration_ns, iteration) = (at as i64 * millisecond, millisecond as u64, Some(0));
        let (index, depth, device) = (Some(at), 0, None);
        stream.span(&Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device }).unwrap();
        stream.flush(&[], Totals::default()).unwrap();
    }
    let (number, kind, cpu_ns, tokens) = (0, Kind::Train, None, None);
    let duration_ns = 1_000 * millisecond as u64;
    stream.iteration(&Iteration { lane, number, kind, begin_ns: 0, duration_ns, cpu_ns, tokens }).unwrap();
    stream.end(&[], Totals::default()).unwrap();
    assert_eq!(same(&run, &Selection::default(), 10), 1_001);
    let (source, _) = Source::open(&run, &Selection::default()).unwrap();
    let (trace, ..) = exported(&source.in_pieces_of(10), &Options { name: "long".into(), ..Options::default() });
    let told = |name: &str| trace.slices[&("drafter:0 < rank 0: long".to_owned(), name.to_owned())];
    assert_eq!((told("iteration"), told("drafter.step").0), ((1, duration_ns), 1_000));
}

/// A run that goes on between the first look and the reading: what was open then has ended, and is one slice.
#[test]
fn a_span_that_ends_meanwhile_is_one_slice() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), "live", Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    let [outer, inner] = ["drafter.backward", "drafter.layer"].map(|name| stream.name(name));
    let span = |name, depth, begin_ns, duration_ns| {
        let (iteration, index, device) = (Some(0), None, None);
        Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device }
    };
    stream.span(&span(inner, 1, 1_000, 500)).unwrap();
    let open = [OpenSpan { name: outer, lane, begin_ns: 1_000 }, OpenSpan { name: inner, lane, begin_ns: 2_000 }];
    stream.flush(&open, Totals::default()).unwrap();
    let (source, window) = Source::open(&run, &Selection::default()).unwrap();
    stream.span(&span(outer, 0, 1_000, 9_000)).unwrap();
    stream.flush(&[], Totals::default()).unwrap();
    let (trace, ..) = exported(&source, &Options { window, name: "live".into(), live: true });
    let told = |name: &str| trace.slices[&("drafter:0 < rank 0: live".to_owned(), name.to_owned())];
    assert_eq!(told("drafter.backward"), (1, 9_000), "it has ended: the span alone");
    assert_eq!(told("drafter.layer").0, 2, "one has ended before, and one is open");
}

/// By hand, and optimised, on its own: `cargo test --release -p dflash-reports --test reports -- --ignored --nocapture
/// a_trace_of_a_gigabyte`. Writes a timeline below the temporary directory (DFLASH_BIG_MB: its megabytes), and deletes it.
#[test]
#[ignore = "writes a gigabyte; prints what docs/measurements.md may hold"]
fn a_trace_of_a_gigabyte() {
    let megabytes: u64 = std::env::var("DFLASH_BIG_MB").map_or(1000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (bytes, segment_bytes, iterations) = (megabytes * 1_000_000, 64 << 20, u64::MAX);
    let busy = Busy { ranks: 1, pairs: 4, segment_bytes, iterations, bytes, restart_after: 100_000 };
    let (run, bytes) = busy.write(dir.path());
    println!("{:.0} MB, at most {} MB resident while it was written", bytes as f64 / 1e6, most_resident_mb());
    let began = std::time::Instant::now();
    let (source, window) = Source::open(&run, &Selection::default()).unwrap();
    println!("looked through once: {:.1} s, {} MB", began.elapsed().as_secs_f64(), most_resident_mb());
    let counts = perfetto(&source, &Options { window, ..Options::default() }, &mut std::io::sink()).unwrap();
    let (wall, most) = (began.elapsed().as_secs_f64(), most_resident_mb());
    println!("{} slices: {wall:.1} s in all, at most {most} MB resident", counts.slices);
    assert!(most < 1000, "{most} MB");
}
