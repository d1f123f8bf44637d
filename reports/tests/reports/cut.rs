//! A recording cut at every byte: an answer with a warning or a clear error, never a panic, never silence.

use dflash_reports::flamegraph::{By, Graph, Options as Drawing, Time};
use dflash_reports::timeline::record::{
    Anchor, Counter, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, Mark, Sample, Severity, Span, Totals,
};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter, read};
use dflash_reports::trace::{Options, Source, chrome, perfetto};
use dflash_reports::window::{Selection, TimeRange};

fn recorded(dir: &std::path::Path) -> RunDir {
    let run = RunDir::create(dir, "torn", Manifest::default()).unwrap();
    let mut out = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    let lane = out.lane(&Lane { name: "drafter:0".into(), device: "cuda:0".into(), rank: 0 });
    let counter = out.counter(&Counter { name: "queue.features.depth".into(), unit: "items".into(), rank: 0 });
    out.anchor(&Anchor { monotonic_ns: 5, realtime_ns: 1_796_035_383_000_000_000 });
    for number in 0..6_u64 {
        let begin_ns = 1_000 + number as i64 * 10_000;
        for (at, stage) in ["drafter.wait", "drafter.forward"].into_iter().enumerate() {
            let (name, begin_ns) = (out.name(stage), begin_ns + at as i64 * 3_000);
            let device = (at == 1).then_some(DeviceTime { begin_ns: begin_ns + 500, duration_ns: 2_000, stream: None });
            let span = Span {
                name,
                lane,
                iteration: Some(number),
                index: None,
                depth: 0,
                begin_ns,
                duration_ns: 2_500,
                device,
            };
            out.span(&span).unwrap();
        }
        let (kind, cpu_ns, tokens) = (Kind::Train, Some(900), Some(64));
        out.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns: 9_000, cpu_ns, tokens }).unwrap();
        out.flow(&Flow { id: number, end: FlowEnd::Take, lane, time_ns: begin_ns }).unwrap();
        out.sample(&Sample { counter, time_ns: begin_ns, value: 1.5 }).unwrap();
        if number % 2 == 1 {
            out.flush(&[], Totals::default()).unwrap();
        }
    }
    out.mark(&Mark { time_ns: 70_000, severity: Severity::Info, text: "end".into() }).unwrap();
    out.end(&[], Totals::default()).unwrap();
    run
}

#[test]
fn cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded(dir.path());
    let segment = std::fs::read_dir(run.timeline_dir()).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&segment).unwrap();
    let part = Selection { window: Some("0s..1s".parse::<TimeRange>().unwrap()), ..Selection::default() };
    for length in 0..=whole.len() {
        std::fs::write(&segment, &whole[..length]).unwrap();
        let timeline = read(&run).unwrap();
        assert_eq!(timeline.health.ended, length == whole.len(), "cut after {length} bytes");
        let options = Options { name: run.name(), ..Options::default() };
        let mut trace = Vec::new();
        let (source, _) = Source::open(&run, &Selection::default()).unwrap();
        let source = source.in_pieces_of(7);
        perfetto(&source, &options, &mut trace).unwrap();
        // Field 138 of a packet, the first of which stands right behind the clocks.
        let torn = trace.windows(2).take(400).any(|bytes| bytes == [0xd2, 0x08]);
        assert_eq!(torn, length < whole.len(), "a torn source is named one: {length}");
        let mut json = Vec::new();
        chrome(&source, &options, Some(&run), &mut json).unwrap();
        serde_json::from_slice::<serde_json::Value>(&json).unwrap();
        for (time, selection) in
            [(Time::Wall, &Selection::default()), (Time::Device, &Selection::default()), (Time::Wall, &part)]
        {
            match Graph::of_run(&run, selection, time, By::Lane) {
                Ok((graph, timeline)) => {
                    assert_eq!(timeline.health.ended, length == whole.len());
                    graph.svg(&Drawing::default()).unwrap();
                }
                Err(error) => assert!(error.to_string().contains("was recorded"), "{error}"),
            }
        }
    }
}
