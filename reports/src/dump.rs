//! The records of a timeline as lines, one each, for grep and for bug reports.

use crate::error::Result;
use crate::text::harmless;
use dflash_timeline::Timeline;
use dflash_timeline::record::{FlowEnd, LaneId, NameId, Severity};
use std::io::Write;

/// Writes every record. Times are nanoseconds since the first record of the timeline.
///
/// # Errors
/// If writing fails.
pub fn records(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let origin = timeline.extent().map_or(0, |(first, _)| first);
    let at = |ns: i64| ns.wrapping_sub(origin);
    let lane = |id: LaneId| lane_text(timeline, id);
    for i in &timeline.iterations {
        let (cpu, tokens) = (known(i.cpu_ns), known(i.tokens));
        let (who, kind) = (lane(i.lane), i.kind.as_str());
        let (begin, ns) = (at(i.begin_ns), i.duration_ns);
        writeln!(out, "iteration {who} #{} {kind} begin={begin} ns={ns} cpu_ns={cpu} tokens={tokens}", i.number)?;
    }
    for s in &timeline.spans {
        let name = harmless(timeline.name(s.name));
        let (iteration, index) = (known(s.iteration), known(s.index));
        let device = s.device.map_or_else(|| "N/A".into(), |d| format!("{}+{}", at(d.begin_ns), d.duration_ns));
        let (who, depth, begin, ns) = (lane(s.lane), s.depth, at(s.begin_ns), s.duration_ns);
        writeln!(
            out,
            "span {who} #{iteration} {name} index={index} depth={depth} begin={begin} ns={ns} device={device}"
        )?;
    }
    for s in &timeline.samples {
        let counter = timeline.counters.get(s.counter.0 as usize);
        let (name, unit) = counter.map_or(("?", ""), |c| (c.name.as_str(), c.unit.as_str()));
        writeln!(out, "sample {} time={} value={} {}", harmless(name), at(s.time_ns), s.value, harmless(unit))?;
    }
    for f in &timeline.flows {
        let end = if f.end == FlowEnd::Put { "put" } else { "take" };
        writeln!(out, "flow {} {end} id={} time={}", lane(f.lane), f.id, at(f.time_ns))?;
    }
    for m in &timeline.marks {
        let severity = if m.severity == Severity::Warning { "warning" } else { "info" };
        writeln!(out, "mark {severity} time={} {}", at(m.time_ns), harmless(&m.text))?;
    }
    stacks_and_anchors(timeline, at, out)?;
    for o in &timeline.open {
        writeln!(out, "open {} {} begin={}", lane(o.lane), harmless(timeline.name(o.name)), at(o.begin_ns))?;
    }
    totals(timeline, out)
}

/// Writes the counts alone: what was read, what was lost, what `keep` has deleted (it was written, so it counts as written;
/// `detail_from` is CLOCK_MONOTONIC), whether the stream is whole.
///
/// # Errors
/// If writing fails.
pub fn totals(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let (t, h) = (&timeline.totals, &timeline.health);
    writeln!(
        out,
        "read lanes={} iterations={} spans={} samples={} flows={} marks={} stacks={}",
        timeline.lanes.len(),
        timeline.iterations.len(),
        timeline.spans.len(),
        timeline.samples.len(),
        timeline.flows.len(),
        timeline.marks.len(),
        timeline.stacks.len()
    )?;
    for lane in &timeline.lane_totals {
        let who = lane_text(timeline, lane.lane);
        let sum = sum_text(lane.emitted, lane.written, lane.dropped);
        writeln!(out, "lane {who} {sum}")?;
    }
    let sum = sum_text(t.emitted, t.written, t.dropped);
    writeln!(
        out,
        "totals {sum} open={} negative={} unresolved={} misplaced={}",
        t.open, t.negative, t.unresolved, t.misplaced
    )?;
    if timeline.expired.segments > 0 {
        let (expired, from) =
            (timeline.expired, timeline.detail_from_ns.map_or_else(|| "N/A".into(), |ns| ns.to_string()));
        let (records, segments, bytes) = (expired.records, expired.segments, expired.bytes);
        writeln!(out, "expired records={records} segments={segments} bytes={bytes} detail_from={from}")?;
    }
    let whole = if h.ended && h.bad_blocks == 0 { "whole" } else { "not whole" };
    writeln!(out, "health {whole} ended={} bad_blocks={} skipped_bytes={}", h.ended, h.bad_blocks, h.skipped_bytes)?;
    for problem in &h.problems {
        writeln!(out, "problem {}", harmless(problem))?;
    }
    Ok(())
}

/// Sampled stacks and the devices' clock anchors.
fn stacks_and_anchors(timeline: &Timeline, at: impl Fn(i64) -> i64, out: &mut impl Write) -> Result<()> {
    let name = |id: &NameId| harmless(timeline.name(*id));
    let row = |ids: &[NameId]| ids.iter().map(name).collect::<Vec<_>>().join(";");
    for s in &timeline.stacks {
        let lane = s.lane.map_or_else(|| "N/A".into(), |id| lane_text(timeline, id));
        let (thread, iteration, time) = (name(&s.thread), known(s.iteration), at(s.time_ns));
        let (spans, frames) = (row(&s.spans), row(&s.frames));
        writeln!(out, "stack {lane} #{iteration} {thread} tid={} time={time} spans={spans} frames={frames}", s.tid)?;
    }
    for a in &timeline.anchors {
        writeln!(out, "anchor time={} unix={}", at(a.monotonic_ns), a.realtime_ns)?;
    }
    for a in &timeline.device_anchors {
        let (device, time) = (name(&a.device), at(a.host_ns));
        writeln!(out, "device-anchor {device} time={time} device={} uncertainty={}", a.device_ns, a.uncertainty_ns)?;
    }
    Ok(())
}

fn lane_text(timeline: &Timeline, id: LaneId) -> String {
    timeline.lane(id).map_or_else(|| "?".into(), |lane| format!("{}@{}", harmless(&lane.name), lane.rank))
}

/// The three counts, and what is wrong with them if they do not add up.
fn sum_text(emitted: u64, written: u64, dropped: u64) -> String {
    let missing = i128::from(emitted) - i128::from(written) - i128::from(dropped);
    let doubt = if missing == 0 { String::new() } else { format!(" unaccounted={missing}") };
    format!("emitted={emitted} written={written} dropped={dropped}{doubt}")
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "N/A".into(), |value| value.to_string())
}
