//! The profiler's own section: what it costs each lane, its threads, its bytes, what it lost, what its budget did.

use super::{Section, fine_percent, known, named};
use crate::queues::CounterRow;
use crate::report::paired::Interval;
use crate::report::{BareLane, Cost, FEWEST_PAIRS, MarkRow, MeasuredLane, Report};
use crate::text::{UNKNOWN, duration, grouped, harmless, milliseconds};
use dflash_timeline::record::Severity;
use std::collections::BTreeSet;

/// Marks that the text forms show; JSON has all.
const MOST_MARKS: usize = 10;

/// What the intervals are.
const LEGEND: [&str; 2] = [
    "low, high: 95 % interval of what the instrumentation costs, as measured while it ran",
    "pairs: the same, computed anew from bare iterations and their instrumented neighbours",
];

pub(super) fn section(report: &Report) -> Section {
    let cost = &report.profiler;
    let compared = !cost.measured.is_empty() || !cost.bare.is_empty();
    let legend = LEGEND.into_iter().filter(|_| compared).map(str::to_owned);
    let mut notes: Vec<String> = legend.chain(cost.bare.iter().map(bare)).collect();
    if !compared {
        notes.push(format!("cost by lane {UNKNOWN} (no counter profiler.cost.*, no bare iterations)"));
    }
    notes.extend(cost.counters.iter().map(counter));
    let all = known(cost.cpu_share.map(fine_percent));
    notes.push(format!("CPU of all threads of the profiler: {all} of one core"));
    notes.extend(cost.marks.iter().take(MOST_MARKS).map(mark));
    if cost.marks.len() > MOST_MARKS {
        notes.push(format!("and {} marks more (see --format json)", cost.marks.len() - MOST_MARKS));
    }
    let headings =
        ["lane", "low", "high", "calls x cost", "pairs", "pairs low", "pairs high", "emitted", "written", "dropped"];
    Section { title: "the profiler itself".into(), names: 1, headings: headings.to_vec(), rows: rows(report), notes }
}

/// One row for each lane of which anything is known.
fn rows(report: &Report) -> Vec<Vec<String>> {
    let Cost { measured, bare, .. } = &report.profiler;
    let losses = &report.losses.lanes;
    let names =
        measured.iter().map(|m| (m.rank, m.lane.as_str())).chain(bare.iter().map(|b| (b.rank, b.lane.as_str())));
    let names: BTreeSet<(u32, &str)> = names.chain(losses.iter().map(|l| (l.rank, l.lane.as_str()))).collect();
    let row = |(rank, lane): (u32, &str)| {
        let measured = measured.iter().find(|m| (m.rank, m.lane.as_str()) == (rank, lane));
        let bare = bare.iter().find(|b| (b.rank, b.lane.as_str()) == (rank, lane));
        let lost = losses.iter().find(|l| (l.rank, l.lane.as_str()) == (rank, lane));
        let percent = |value: fn(&MeasuredLane) -> Option<f64>| {
            known(measured.and_then(value).map(|percent| fine_percent(percent / 100.0)))
        };
        let again =
            |value: fn(&Interval) -> f64| known(bare.and_then(|b| b.cost.as_ref()).map(|c| fine_percent(value(c))));
        vec![
            named(lane, rank),
            percent(|m| m.low_percent),
            percent(|m| m.high_percent),
            percent(|m| m.calls_percent),
            known(bare.map(|b| grouped(b.pairs))),
            again(|interval| interval.low),
            again(|interval| interval.high),
            known(lost.map(|l| grouped(l.emitted))),
            known(lost.map(|l| grouped(l.written))),
            known(lost.map(|l| grouped(l.dropped))),
        ]
    };
    names.into_iter().map(row).collect()
}

fn bare(lane: &BareLane) -> String {
    let (with, without) = (milliseconds(lane.train_p50_ns as f64), milliseconds(lane.bare_p50_ns as f64));
    let name = named(&lane.lane, lane.rank);
    let cost = match &lane.cost {
        Some(cost) => format!("{} by {} pairs", fine_percent(cost.middle), grouped(lane.pairs)),
        None => format!("cost {UNKNOWN}: {} of {FEWEST_PAIRS} pairs", lane.pairs),
    };
    format!("{name} takes {with} ms with and {without} ms without spans ({} bare; {cost})", grouped(lane.iterations))
}

/// CPU time as a share of one core, everything else by second.
fn counter(row: &CounterRow) -> String {
    let name = named(&row.counter, row.rank);
    match (row.unit.as_str(), row.per_s) {
        ("ns", per_s) => {
            let share = known(per_s.map(|ns| fine_percent(ns / 1e9)));
            format!("{name} {:.1} ms, {share} of one core", row.growth / 1e6)
        }
        (unit, per_s) => {
            let rate = known(per_s.map(|rate| grouped(rate.round() as u64)));
            format!("{name} {} {}, {rate} by second", grouped(row.growth.round() as u64), harmless(unit))
        }
    }
}

fn mark(row: &MarkRow) -> String {
    let after = row.after_ns.map(|ns| duration(u64::try_from(ns).unwrap_or(0)));
    let loud = if row.severity == Severity::Warning { "warning, " } else { "" };
    format!("{loud}after {}: {}", known(after), harmless(&row.text))
}

/// Nothing at all where nothing was sampled: sampling is off unless it is asked for.
pub(super) fn cpu_samples(report: &Report) -> Option<Section> {
    let samples = report.cpu_samples.as_ref()?;
    let number = |value: Option<f64>| known(value.map(|value| grouped(value.max(0.0).round() as u64)));
    let rate = known(samples.rate_hz.map(|rate| format!("{rate:.1}")));
    let stacks = format!("{} stacks, {} of them on no lane", grouped(samples.stacks), grouped(samples.without_lane));
    let taken = format!("{} samples taken, {} lost, {rate} a second", number(samples.taken), number(samples.lost));
    let notes = vec![stacks, taken, "dflash flamegraph --time cpu draws them".into()];
    Some(Section { title: "CPU samples".into(), notes, ..Section::default() })
}
