//! The profiler accounts for itself: what it costs each lane, its threads' CPU, its bytes, what it did about its cost.

use super::paired::{self, Interval, Pairs};
use crate::counters::Readings;
use crate::queues::{CounterRow, profiler_counters};
use crate::stages::{LaneTable, StageTable};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Kind, LaneId, Mark, Severity};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the profiler itself cost, as far as it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The counters that it keeps about its own work: CPU time of its threads (unit `ns`), bytes written.
    pub counters: Vec<CounterRow>,
    /// CPU time of all its threads together ÷ wall time: 0.01 is 1 % of a core. Unknown without any such counter.
    pub cpu_share: Option<f64>,
    /// What it measured of its cost while the run went on; latest values.
    pub measured: Vec<MeasuredLane>,
    /// Instrumented against bare iterations, on lanes that have both.
    pub bare: Vec<BareLane>,
    /// Changes of the level and what the budget did.
    pub marks: Vec<MarkRow>,
}

/// A lane's cost as the profiler measured it, percent of the lane's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredLane {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Lower end of the interval.
    pub low_percent: Option<f64>,
    /// Upper end.
    pub high_percent: Option<f64>,
    /// Number of calls × measured cost of one: an estimate of another kind.
    pub calls_percent: Option<f64>,
}

/// Iterations with and without instrumentation on one lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareLane {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Bare iterations.
    pub iterations: u64,
    /// Median duration of a bare iteration.
    pub bare_p50_ns: u64,
    /// Median duration of an instrumented one.
    pub train_p50_ns: u64,
    /// Bare iterations with an instrumented one beside them, since the level last changed.
    pub pairs: u64,
    /// The cost from those; unknown below [`FEWEST_PAIRS`](super::FEWEST_PAIRS).
    pub cost: Option<Interval>,
}

/// A mark of the profiler about itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarkRow {
    /// Since the first record; `None` if there is none.
    pub after_ns: Option<i64>,
    /// How loud.
    pub severity: Severity,
    /// What.
    pub text: String,
}

impl Cost {
    /// Gathers what is known.
    pub(crate) fn of(
        timeline: &Timeline,
        readings: &Readings,
        pairs: &Pairs,
        stages: &StageTable,
        marks: Vec<MarkRow>,
    ) -> Self {
        let counters = profiler_counters(timeline, readings);
        let cpu = counters.iter().filter(|row| row.unit == "ns").filter_map(|row| row.per_s);
        let cpu_share = cpu.reduce(|a, b| a + b).map(|ns_per_s| ns_per_s / 1e9);
        let bare = stages.lanes.iter().filter_map(|lane| bare(timeline, lane, pairs)).collect();
        Self { counters, cpu_share, measured: measured(timeline, readings), bare, marks }
    }
}

/// Counters `profiler.cost.<lane>.<low|high|calls>`.
fn measured(timeline: &Timeline, readings: &Readings) -> Vec<MeasuredLane> {
    let found = readings.wanted(timeline, |counter| counter.name.strip_prefix("profiler.cost.")?.rsplit_once('.'));
    let mut lanes: BTreeMap<(u32, &str), MeasuredLane> = BTreeMap::new();
    for (counter, (lane, what), reading) in found {
        let new = || MeasuredLane { lane: lane.to_owned(), rank: counter.rank, ..MeasuredLane::default() };
        let latest = Some(reading.last.value);
        match what {
            "low" => lanes.entry((counter.rank, lane)).or_insert_with(new).low_percent = latest,
            "high" => lanes.entry((counter.rank, lane)).or_insert_with(new).high_percent = latest,
            "calls" => lanes.entry((counter.rank, lane)).or_insert_with(new).calls_percent = latest,
            _ => {}
        }
    }
    lanes.into_values().collect()
}

fn bare(timeline: &Timeline, table: &LaneTable, pairs: &Pairs) -> Option<BareLane> {
    let bare = table.set_apart.iter().find(|set| set.kind == Kind::Bare && table.iterations > 0)?;
    let is_its = |lane: &dflash_timeline::record::Lane| lane.name == table.lane && lane.rank == table.rank;
    let lanes = (0..).map(LaneId).zip(&timeline.lanes).filter(|(_, lane)| is_its(lane));
    let logs: Vec<f64> = lanes.flat_map(|(id, _)| pairs.logs(id)).collect();
    Some(BareLane {
        lane: table.lane.clone(),
        rank: table.rank,
        iterations: bare.iterations,
        bare_p50_ns: bare.p50_ns,
        train_p50_ns: table.total.p50_ns,
        pairs: logs.len() as u64,
        cost: paired::interval(&logs),
    })
}

/// The rows of marks that speak of the level or the budget.
pub(crate) fn about(mark: &Mark, begin_ns: Option<i64>) -> Option<MarkRow> {
    says(mark, &["level", "budget", "max_overhead"]).then(|| MarkRow {
        after_ns: begin_ns.map(|begin| mark.time_ns.saturating_sub(begin)),
        severity: mark.severity,
        text: mark.text.clone(),
    })
}

/// Whether one of these words stands in a mark.
pub(crate) fn says(mark: &Mark, wanted: &[&str]) -> bool {
    mark.text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| wanted.contains(&word))
}
