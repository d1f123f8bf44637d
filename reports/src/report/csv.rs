//! stages.csv: the stage table for other programs. Its columns: [`stages_csv`].

use crate::error::Result;
use crate::stages::{Hint, LaneTable, StageTable, TOTAL};
use crate::stats::Stats;

/// Version of the layout.
const SCHEMA: &str = "1";

/// The columns, in order.
pub const STAGES_HEADER: [&str; 26] = [
    "schema",
    "rank",
    "lane",
    "device",
    "stage",
    "parent",
    "depth",
    "spans",
    "iterations",
    "host_total_ns",
    "host_mean_ns",
    "host_p50_ns",
    "host_p95_ns",
    "host_max_ns",
    "share",
    "device_iterations",
    "device_total_ns",
    "device_mean_ns",
    "device_p50_ns",
    "device_p95_ns",
    "device_max_ns",
    "hint",
    "host_p90_ns",
    "host_p99_ns",
    "device_p90_ns",
    "device_p99_ns",
];

/// What stands in one row, apart from whose it is.
struct Row<'a> {
    stage: &'a str,
    parent: &'a str,
    depth: u8,
    spans: String,
    host: &'a Stats,
    share: f64,
    device: Option<&'a Stats>,
    hint: &'static str,
}

/// Writes stages.csv, the stage table for other programs.
///
/// New columns come at the end; the version rises when one goes or changes its meaning.
/// RFC 4180 (lines end with LF), `.` as decimal point, one header line, one row per lane × stage in the order of the
/// table, then the lane's `total`. What is not known is an empty field; NaN is never written.
///
/// | column | unit | meaning |
/// |---|---|---|
/// | schema | | version of this layout, 1 |
/// | rank, lane, device | | whose row it is |
/// | stage | | name; `residue` is what no stage accounts for, `total` the whole iteration |
/// | parent | | the span around a nested one; empty for stages |
/// | depth | | 0 for stages, `residue` and `total`, 1 and more for what is nested |
/// | spans | | number of spans; empty for `residue` and `total` |
/// | iterations | | iterations of kind `train` in which it ran: the count behind the host columns |
/// | host_total_ns | ns | host time in all |
/// | host_mean_ns, host_p50_ns, host_p95_ns, host_max_ns | ns | per iteration in which it ran; percentiles by nearest rank |
/// | share | fraction, 0 to 1 | host time ÷ that of all the lane's iterations |
/// | device_iterations | | iterations with a device time; the device columns are empty without one |
/// | device_total_ns … device_max_ns | ns | the same of device time, over the iterations that have one |
/// | hint | | what both clocks say: `async`, `sync`, `hidden sync`, `held back`, `in step`, `launch-bound`; empty where they say nothing |
/// | host_p90_ns, host_p99_ns, device_p90_ns, device_p99_ns | ns | further percentiles, of the same iterations |
///
/// # Errors
/// If writing fails.
pub fn stages_csv(table: &StageTable) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(STAGES_HEADER)?;
    for lane in table.lanes.iter().filter(|lane| lane.iterations > 0) {
        for row in rows(lane) {
            write_row(&mut writer, lane, &row)?;
        }
    }
    writer.into_inner().map_err(|e| e.into_error().into())
}

fn rows(lane: &LaneTable) -> impl Iterator<Item = Row<'_>> {
    let stages = lane.rows.iter().map(|row| Row {
        stage: &row.stage,
        parent: row.parent.as_deref().unwrap_or_default(),
        depth: row.depth,
        spans: if row.spans > 0 { row.spans.to_string() } else { String::new() },
        host: &row.host,
        share: row.share,
        device: row.device.as_ref(),
        hint: row.hint.map_or("", Hint::as_str),
    });
    let total = Row {
        stage: TOTAL,
        parent: "",
        depth: 0,
        spans: String::new(),
        host: &lane.total,
        share: 1.0,
        device: lane.total_device.as_ref(),
        hint: "",
    };
    stages.chain([total])
}

fn write_row(writer: &mut csv::Writer<Vec<u8>>, lane: &LaneTable, row: &Row<'_>) -> Result<()> {
    let mut fields = vec![
        SCHEMA.to_owned(),
        lane.rank.to_string(),
        lane.lane.clone(),
        lane.device.clone(),
        row.stage.to_owned(),
        row.parent.to_owned(),
        row.depth.to_string(),
        row.spans.clone(),
    ];
    fields.extend(statistics(row.host));
    fields.push(format!("{:.6}", row.share));
    match row.device {
        Some(device) => fields.extend(statistics(device)),
        None => fields.extend(std::iter::repeat_n(String::new(), 6)),
    }
    fields.push(row.hint.to_owned());
    fields.extend([row.host.p90_ns, row.host.p99_ns].map(|ns| ns.to_string()));
    let device = |ns: fn(&Stats) -> u64| row.device.map_or_else(String::new, |stats| ns(stats).to_string());
    fields.extend([device(|stats| stats.p90_ns), device(|stats| stats.p99_ns)]);
    Ok(writer.write_record(fields)?)
}

fn statistics(stats: &Stats) -> [String; 6] {
    [
        stats.count.to_string(),
        stats.total_ns.to_string(),
        format!("{:.1}", stats.mean_ns),
        stats.p50_ns.to_string(),
        stats.p95_ns.to_string(),
        stats.max_ns.to_string(),
    ]
}
