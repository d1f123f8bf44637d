//! Small runs in directories, as a training leaves them.

use dflash_reports::timeline::record::{Anchor, Counter, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, Mark, Sample};
use dflash_reports::timeline::record::{Severity, Span, Totals};
use dflash_reports::timeline::{
    IterationRow, IterationsWriter, Manifest, MetricsRow, MetricsWriter, RunDir, SegmentWriter, State,
};
use std::path::Path;

const MS: u64 = 1_000_000;
/// 2026-11-30 12:00 UTC.
pub const NOON_NS: i64 = 1_796_040_000 * 1_000_000_000;

/// What to record.
pub struct Recipe<'a> {
    pub name: &'a str,
    pub host: &'a str,
    pub rank: u32,
    /// What the monotonic clock shows at noon.
    pub clock_ns: i64,
    pub iterations: u64,
    /// Milliseconds of drafter.forward.
    pub forward_ms: u64,
}

impl Default for Recipe<'_> {
    fn default() -> Self {
        Self { name: "run", host: "one", rank: 0, clock_ns: 5_000_000_000, iterations: 20, forward_ms: 8 }
    }
}

/// Records a run that begins at noon: a target and a drafter, hand-offs, counters, a mark, both CSV files.
pub fn record(parent: &Path, recipe: &Recipe<'_>) -> RunDir {
    let mut manifest = Manifest::default();
    (manifest.host, manifest.started_unix_ns) = (recipe.host.into(), NOON_NS);
    let run = RunDir::create(parent, recipe.name, manifest).unwrap();
    record_rank(&run, recipe, None);
    let mut manifest = run.manifest().unwrap();
    (manifest.state, manifest.ended_unix_ns) = (State::Finished, Some(NOON_NS + 1_000_000_000));
    run.write_manifest(&manifest).unwrap();
    run
}

/// What a rank records into a run. `offset_ns` is what it says of its clock.
pub fn record_rank(run: &RunDir, recipe: &Recipe<'_>, offset_ns: Option<i64>) {
    let mut stream = SegmentWriter::create(run, recipe.rank, 1 << 20).unwrap();
    stream.anchor(&Anchor { monotonic_ns: recipe.clock_ns, realtime_ns: NOON_NS });
    let lane = |name: &str, device: &str| Lane { name: name.into(), device: device.into(), rank: recipe.rank };
    let (target, drafter) = (stream.lane(&lane("target:0", "cpu")), stream.lane(&lane("drafter:0", "cpu")));
    let depth = Counter { name: "queue.hidden_states.depth".into(), unit: "items".into(), rank: recipe.rank };
    let depth = stream.counter(&depth);
    for (name, value) in [("clock.offset", offset_ns), ("clock.uncertainty", offset_ns.and(Some(20_000)))] {
        let Some(value) = value else { continue };
        let counter = stream.counter(&Counter { name: name.into(), unit: "ns".into(), rank: recipe.rank });
        stream.sample(&Sample { counter, time_ns: recipe.clock_ns, value: value as f64 }).unwrap();
    }
    let mut rows = IterationsWriter::open(&run.iterations_csv()).unwrap();
    let mut metrics = MetricsWriter::open(&run.metrics_csv(), 0).unwrap();
    for number in 0..recipe.iterations {
        let begin_ns = recipe.clock_ns + (number * 20 * MS) as i64;
        let flow = |lane, end, time_ns| Flow { id: number, end, lane, time_ns };
        one(&mut stream, &mut rows, recipe, target, (number, begin_ns), &[("target.forward", 12), ("target.put", 4)]);
        stream.flow(&flow(target, FlowEnd::Put, begin_ns + (12 * MS) as i64)).unwrap();
        let stages = [("drafter.wait", 2), ("drafter.forward", recipe.forward_ms)];
        one(&mut stream, &mut rows, recipe, drafter, (number, begin_ns + (15 * MS) as i64), &stages);
        stream.flow(&flow(drafter, FlowEnd::Take, begin_ns + (17 * MS) as i64)).unwrap();
        stream.sample(&Sample { counter: depth, time_ns: begin_ns, value: (number % 4) as f64 }).unwrap();
        let (step, time_ns) = (number + 1, NOON_NS + (number * 20 * MS) as i64);
        let loss = Some(7.0 / (number + 1) as f64);
        metrics.write(&MetricsRow { attempt: 1, step, time_ns, loss, ..MetricsRow::default() }).unwrap();
    }
    let time_ns = recipe.clock_ns;
    stream.mark(&Mark { time_ns, severity: Severity::Info, text: "level stages".into() }).unwrap();
    rows.flush().unwrap();
    stream.end(&[], Totals::default()).unwrap();
}

/// An iteration of stages, milliseconds each, without residue; in the timeline and in iterations.csv.
fn one(
    stream: &mut SegmentWriter,
    rows: &mut IterationsWriter,
    recipe: &Recipe<'_>,
    lane: LaneId,
    (number, begin_ns): (u64, i64),
    stages: &[(&str, u64)],
) {
    let who = if lane.0 == 0 { "target:0" } else { "drafter:0" };
    let mut row = IterationRow {
        lane: who.into(),
        device: "cpu".into(),
        rank: recipe.rank,
        iteration: number,
        ..IterationRow::default()
    };
    let mut now = begin_ns;
    for (name, ms) in stages {
        let (name_id, iteration, duration_ns) = (stream.name(name), Some(number), ms * MS);
        let (index, depth, device) = (None, 0, None);
        stream
            .span(&Span { name: name_id, lane, iteration, index, depth, begin_ns: now, duration_ns, device })
            .unwrap();
        (row.stage, row.host_ns) = ((*name).into(), Some(duration_ns));
        row.start_ns = now - recipe.clock_ns + NOON_NS;
        rows.write(&row).unwrap();
        now += duration_ns as i64;
    }
    let (duration_ns, kind) = ((now - begin_ns) as u64, Kind::Train);
    let tokens = Some(100);
    stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns: None, tokens }).unwrap();
    row.start_ns = begin_ns - recipe.clock_ns + NOON_NS;
    for (stage, ns, tokens) in [("residue", 0, None), ("total", duration_ns, tokens)] {
        (row.stage, row.host_ns, row.tokens) = (stage.into(), Some(ns), tokens);
        rows.write(&row).unwrap();
    }
}
