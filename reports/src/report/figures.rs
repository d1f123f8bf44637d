//! figures.csv: everything of a report that is no stage table, one figure a row. Its columns: [`figures_csv`].

mod more;

use super::Report;
use crate::error::Result;
use crate::kernels::Busy;

/// Version of the layout.
const SCHEMA: &str = "1";

/// The columns, in order.
pub const FIGURES_HEADER: [&str; 8] = ["schema", "section", "rank", "lane", "device", "stage", "figure", "value"];

/// Whose figures follow.
#[derive(Clone, Copy, Default)]
struct Of<'a> {
    section: &'a str,
    rank: u32,
    lane: &'a str,
    device: &'a str,
    stage: &'a str,
}

struct Writer(csv::Writer<Vec<u8>>);

impl Writer {
    /// A value that is not known is an empty field.
    fn row(&mut self, of: Of<'_>, figure: &str, value: Option<f64>) -> Result<()> {
        let value = value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string());
        let rank = of.rank.to_string();
        Ok(self.0.write_record([SCHEMA, of.section, &rank, of.lane, of.device, of.stage, figure, &value])?)
    }

    fn count(&mut self, of: Of<'_>, figure: &str, value: u64) -> Result<()> {
        self.row(of, figure, Some(value as f64))
    }

    fn busy(&mut self, of: Of<'_>, busy: &Busy) -> Result<()> {
        self.count(of, "window_ns", busy.window_ns)?;
        self.count(of, "busy_ns", busy.busy_ns)?;
        self.count(of, "idle_ns", busy.idle_ns)
    }
}

/// Writes figures.csv: the profiler's own cost, losses, allocators, sensors, gaps, kernel captures, queues, hand-offs,
/// goodput and peers.
///
/// | column | meaning |
/// |---|---|
/// | schema | version of this layout, 1 |
/// | section | `profiler`, `losses`, `allocator`, `gpu`, `gaps`, `limiting`, the file name of a kernel capture, `queue` (its name as `lane`), `handoff`
/// (`from>to` as `lane`), `goodput`, `peers` |
/// | rank, lane, device, stage | whose figure it is; empty where there is none |
/// | figure | its name, with its unit at the end; of counters the name, with the unit in brackets |
/// | value | a number; empty where it is not known |
///
/// # Errors
/// If writing fails.
pub fn figures_csv(report: &Report) -> Result<Vec<u8>> {
    let mut writer = Writer(csv::WriterBuilder::new().from_writer(Vec::new()));
    writer.0.write_record(FIGURES_HEADER)?;
    profiler(&mut writer, report)?;
    losses(&mut writer, report)?;
    allocators(&mut writer, report)?;
    gpus(&mut writer, report)?;
    gaps(&mut writer, report)?;
    captures(&mut writer, report)?;
    limiting(&mut writer, report)?;
    more::figures(&mut writer, report)?;
    writer.0.into_inner().map_err(|e| e.into_error().into())
}

fn profiler(writer: &mut Writer, report: &Report) -> Result<()> {
    let section = Of { section: "profiler", ..Of::default() };
    for lane in &report.profiler.measured {
        let of = Of { rank: lane.rank, lane: &lane.lane, ..section };
        writer.row(of, "measured_low_percent", lane.low_percent)?;
        writer.row(of, "measured_high_percent", lane.high_percent)?;
        writer.row(of, "calls_percent", lane.calls_percent)?;
    }
    for lane in &report.profiler.bare {
        let of = Of { rank: lane.rank, lane: &lane.lane, ..section };
        writer.count(of, "bare_iterations", lane.iterations)?;
        writer.count(of, "bare_p50_ns", lane.bare_p50_ns)?;
        writer.count(of, "train_p50_ns", lane.train_p50_ns)?;
        writer.count(of, "pairs", lane.pairs)?;
        writer.row(of, "pairs_low_percent", lane.cost.map(|cost| cost.low * 100.0))?;
        writer.row(of, "pairs_middle_percent", lane.cost.map(|cost| cost.middle * 100.0))?;
        writer.row(of, "pairs_high_percent", lane.cost.map(|cost| cost.high * 100.0))?;
    }
    for row in &report.profiler.counters {
        let of = Of { rank: row.rank, ..section };
        writer.row(of, &format!("{} [{}]", row.counter, row.unit), Some(row.growth))?;
        writer.row(of, &format!("{} [{}/s]", row.counter, row.unit), row.per_s)?;
    }
    writer.row(section, "cpu_percent_of_a_core", report.profiler.cpu_share.map(|share| share * 100.0))?;
    writer.count(section, "marks", report.profiler.marks.len() as u64)
}

fn losses(writer: &mut Writer, report: &Report) -> Result<()> {
    let section = Of { section: "losses", ..Of::default() };
    for lane in &report.losses.lanes {
        let of = Of { rank: lane.rank, lane: &lane.lane, ..section };
        writer.count(of, "emitted", lane.emitted)?;
        writer.count(of, "written", lane.written)?;
        writer.count(of, "dropped", lane.dropped)?;
    }
    let totals = &report.losses.totals;
    writer.count(section, "emitted", totals.emitted)?;
    writer.count(section, "written", totals.written)?;
    writer.count(section, "dropped", totals.dropped)?;
    writer.count(section, "open", totals.open)?;
    writer.count(section, "negative", totals.negative)?;
    writer.count(section, "unresolved", totals.unresolved)?;
    writer.count(section, "misplaced", totals.misplaced)
}

fn allocators(writer: &mut Writer, report: &Report) -> Result<()> {
    for device in &report.allocators {
        let all = Of { section: "allocator", rank: device.rank, device: &device.device, ..Of::default() };
        for moves in &device.stages {
            let of = Of { stage: moves.stage.as_deref().unwrap_or_default(), ..all };
            writer.count(of, "device_allocations", moves.device_allocations)?;
            writer.count(of, "device_frees", moves.device_frees)?;
            writer.count(of, "retries", moves.retries)?;
            writer.count(of, "out_of_memory", moves.out_of_memory)?;
        }
        let late = device.late_device_allocations.map(|late| late as f64);
        writer.row(all, "device_allocations_after_iteration_20", late)?;
        writer.row(all, "reserved_mean_bytes", device.reserved.map(|range| range.mean))?;
        writer.row(all, "reserved_max_bytes", device.reserved.map(|range| range.max))?;
        writer.row(all, "active_mean_bytes", device.active.map(|range| range.mean))?;
        writer.row(all, "active_max_bytes", device.active.map(|range| range.max))?;
        writer.row(all, "allocations_by_iteration", device.allocations.map(|range| range.mean))?;
    }
    Ok(())
}

fn gpus(writer: &mut Writer, report: &Report) -> Result<()> {
    for gpu in &report.gpus {
        let of = Of { section: "gpu", rank: gpu.rank, device: &gpu.device, ..Of::default() };
        for sensor in &gpu.sensors {
            for (what, value) in [
                ("mean", sensor.range.map(|range| range.mean)),
                ("min", sensor.range.map(|range| range.min)),
                ("max", sensor.range.map(|range| range.max)),
            ] {
                writer.row(of, &format!("{}.{what} [{}]", sensor.sensor, sensor.unit), value)?;
            }
        }
        writer.row(of, "throttled_share", gpu.throttled_share)?;
        writer.row(of, "throttled_ns", gpu.throttled_ns.map(|ns| ns as f64))?;
        writer.row(of, "energy_j", gpu.energy_j)?;
        writer.row(of, "energy_per_token_j", gpu.energy_per_token_j)?;
    }
    Ok(())
}

fn gaps(writer: &mut Writer, report: &Report) -> Result<()> {
    for lane in &report.gaps {
        // Where a lane has several streams, which one.
        let stage = lane.stream.map_or_else(String::new, |stream| format!("stream {stream}"));
        let (name, device) = (&lane.lane, &lane.device);
        let of = Of { section: "gaps", rank: lane.rank, lane: name, device, stage: &stage };
        writer.count(of, "gaps", lane.gaps)?;
        writer.count(of, "total_ns", lane.total_ns)?;
        writer.count(of, "input_ns", lane.input_ns)?;
        writer.count(of, "room_ns", lane.room_ns)?;
        writer.count(of, "sync_ns", lane.sync_ns)?;
        writer.count(of, "launch_ns", lane.launch_ns)?;
        writer.count(of, "device_ns", lane.device_ns)?;
        writer.count(of, "unknown", lane.unknown)?;
    }
    Ok(())
}

fn limiting(writer: &mut Writer, report: &Report) -> Result<()> {
    for lane in &report.limiting {
        let of = Of { section: "limiting", rank: lane.rank, lane: &lane.lane, ..Of::default() };
        writer.row(of, "gaps_share", lane.gaps)?;
        for capture in &lane.captures {
            let of = Of { section: &capture.file, ..of };
            writer.row(of, "limiting_idle_share", capture.idle)?;
            writer.row(of, "limiting_unsaid_waits", capture.unsaid_waits.map(|waits| waits as f64))?;
        }
    }
    Ok(())
}

fn captures(writer: &mut Writer, report: &Report) -> Result<()> {
    for capture in &report.captures {
        let section = Of { section: &capture.file, ..Of::default() };
        writer.count(section, "kernels", capture.kernels)?;
        writer.count(section, "discarded", capture.discarded.total())?;
        for device in &capture.devices {
            writer.busy(Of { device: &device.device, ..section }, &device.busy)?;
        }
        for lane in &capture.lanes {
            let of = Of { rank: lane.rank, lane: &lane.lane, device: &lane.device, ..section };
            for stage in &lane.stages {
                writer.busy(Of { stage: &stage.stage, ..of }, &stage.busy)?;
            }
            writer.busy(Of { stage: "between", ..of }, &lane.between)?;
        }
    }
    Ok(())
}
