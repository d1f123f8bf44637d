//! The records of a timeline as lines, one each, for grep and for bug reports.

use crate::error::Result;
use crate::text::harmless;
use dflash_timeline::Timeline;
use dflash_timeline::record::{FlowEnd, LaneId, Severity};
use std::io::Write;

/// Writes every record. Times are nanoseconds since the first record of the timeline.
///
/// # Errors
/// If writing fails.
pub fn records(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let origin = timeline.extent().map_or(0, |(first, _)| first);
    let at = |ns: i64| ns.wrapping_sub(origin);
    let lane =
        |id: LaneId| timeline.lane(id).map_or_else(|| "?".into(), |l| format!("{}@{}", harmless(&l.name), l.rank));
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
    for o in &timeline.open {
        writeln!(out, "open {} {} begin={}", lane(o.lane), harmless(timeline.name(o.name)), at(o.begin_ns))?;
    }
    totals(timeline, out)
}

/// Writes the counts alone: what was read, what was lost, whether the stream is whole.
///
/// # Errors
/// If writing fails.
pub fn totals(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let (t, h) = (&timeline.totals, &timeline.health);
    writeln!(
        out,
        "read lanes={} iterations={} spans={} samples={} flows={} marks={}",
        timeline.lanes.len(),
        timeline.iterations.len(),
        timeline.spans.len(),
        timeline.samples.len(),
        timeline.flows.len(),
        timeline.marks.len()
    )?;
    writeln!(
        out,
        "totals emitted={} written={} dropped={} open={} negative={} unresolved={} misplaced={}",
        t.emitted, t.written, t.dropped, t.open, t.negative, t.unresolved, t.misplaced
    )?;
    let whole = if h.ended && h.bad_blocks == 0 { "whole" } else { "not whole" };
    writeln!(out, "health {whole} ended={} bad_blocks={} skipped_bytes={}", h.ended, h.bad_blocks, h.skipped_bytes)?;
    for problem in &h.problems {
        writeln!(out, "problem {}", harmless(problem))?;
    }
    Ok(())
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "N/A".into(), |value| value.to_string())
}
