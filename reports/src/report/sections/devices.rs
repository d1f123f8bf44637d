//! The devices' sections: sensors, gaps between device spans, kernel captures.

use super::{Section, absent, gibibytes, known, memory::on_gpu, named, share};
use crate::gaps::LaneGaps;
use crate::gpu::{Gpu, Sensor};
use crate::kernels::{Busy, Capture, Discarded};
use crate::report::Report;
use crate::text::{UNKNOWN, duration, grouped, harmless, milliseconds, percent};

pub(super) fn gpus(report: &Report) -> Option<Section> {
    if report.gpus.is_empty() {
        return on_gpu(report).then(|| absent("GPUs", "no counter gpu.*"));
    }
    let rows = report.gpus.iter().flat_map(|gpu| gpu.sensors.iter().map(|sensor| sensor_row(gpu, sensor)));
    let notes = report.gpus.iter().map(|gpu| {
        let energy = known(gpu.energy_j.map(|joules| format!("{} J", grouped(joules.max(0.0).round() as u64))));
        let token = known(gpu.energy_per_token_j.map(|joules| format!("{:.2} mJ", joules * 1e3)));
        let throttled = known(gpu.throttled_share.map(percent));
        let name = named(&gpu.device, gpu.rank);
        let time = known(gpu.throttled_ns.map(duration));
        let reasons = gpu.throttle_reasons.iter().map(|r| format!(", {} by {}", duration(r.ns), r.reason));
        let reasons: String = reasons.collect();
        format!("{name}: energy {energy}, {token} by token; throttled in {throttled} of the readings, {time}{reasons}")
    });
    let notes = notes.chain(together(&report.gpus));
    let (rows, notes) = (rows.collect(), notes.collect());
    Some(Section {
        title: "GPUs".into(),
        names: 2,
        headings: vec!["device", "sensor", "mean", "min", "max"],
        rows,
        notes,
    })
}

/// The energy of all GPUs, where several serve the same drafters and it is known of each.
fn together(gpus: &[Gpu]) -> Option<String> {
    let one_rank = gpus.len() > 1 && gpus.iter().all(|gpu| gpu.rank == gpus[0].rank);
    let sum = |value: fn(&Gpu) -> Option<f64>| gpus.iter().map(value).sum::<Option<f64>>();
    let (energy, token) = (sum(|gpu| gpu.energy_j)?, sum(|gpu| gpu.energy_per_token_j)?);
    let energy = grouped(energy.max(0.0).round() as u64);
    one_rank.then(|| format!("together: energy {energy} J, {:.2} mJ by token", token * 1e3))
}

fn sensor_row(gpu: &Gpu, sensor: &Sensor) -> Vec<String> {
    let value = |value: f64| match sensor.unit.as_str() {
        "bytes" => gibibytes(value),
        // Reasons are bits: a mean of them means nothing, so the line below says how often there was one.
        _ if sensor.sensor == "throttle" => format!("{:#x}", value.max(0.0) as u64),
        unit => format!("{value:.1} {}", harmless(unit)).trim_end().to_owned(),
    };
    let mean = sensor.range.filter(|_| sensor.sensor != "throttle").map(|range| value(range.mean));
    let (min, max) = (sensor.range.map(|range| value(range.min)), sensor.range.map(|range| value(range.max)));
    vec![named(&gpu.device, gpu.rank), harmless(&sensor.sensor), known(mean), known(min), known(max)]
}

pub(super) fn gaps(report: &Report) -> Option<Section> {
    if report.gaps.is_empty() {
        return on_gpu(report).then(|| absent("device gaps", "no device times"));
    }
    let headings = ["lane", "gaps", "total ms", "input", "room", "sync", "launch-bound", "of its time", "unknown"];
    let rows = report.gaps.iter().map(gap_row).collect();
    let mut notes = vec![
        "by what the host did: it waited for input (*.wait), room (*.put), the device (sync.*), or was at work"
            .to_owned(),
        "unknown: places where a device time is missing, so that no gap is known".to_owned(),
    ];
    if report.captures.is_empty() {
        notes.push("gaps between a lane's device spans; only a kernel capture tells more (dflash ctl kernels)".into());
    }
    Some(Section { title: "device gaps".into(), names: 1, headings: headings.to_vec(), rows, notes })
}

fn gap_row(lane: &LaneGaps) -> Vec<String> {
    let part = |ns| share(ns, lane.total_ns);
    let name = named(&lane.lane, lane.rank);
    vec![
        lane.stream.map_or(name.clone(), |stream| format!("{name} stream {stream}")),
        grouped(lane.gaps),
        milliseconds(lane.total_ns as f64),
        part(lane.input_ns),
        part(lane.room_ns),
        part(lane.sync_ns),
        part(lane.launch_ns),
        share(lane.total_ns, lane.total_ns + lane.device_ns),
        grouped(lane.unknown),
    ]
}

pub(super) fn limiting(report: &Report) -> Option<Section> {
    let mut rows = Vec::new();
    for lane in &report.limiting {
        let name = named(&lane.lane, lane.rank);
        let all =
            [name.clone(), "all of the run".to_owned(), known(lane.gaps.map(percent)), UNKNOWN.into(), UNKNOWN.into()];
        rows.push(all.to_vec());
        rows.extend(lane.captures.iter().map(|capture| {
            let over = format!("{}, {} iterations", harmless(&capture.file), capture.iterations);
            let waits = known(capture.unsaid_waits.map(grouped));
            vec![name.clone(), over, UNKNOWN.into(), known(capture.idle.map(percent)), waits]
        }));
    }
    let mut notes =
        vec!["idle: neither this lane nor another had its device do anything, in its stages or between them".into()];
    if report.captures.is_empty() {
        notes.push("idle time needs a kernel capture (dflash ctl kernels)".into());
    }
    let headings = vec!["lane", "over", "gaps", "idle", "unsaid waits"];
    notes.push("unsaid waits: calls that held up the host until the device was done, outside of spans sync.*".into());
    (!rows.is_empty()).then(|| Section { title: "limiting side".into(), names: 2, headings, rows, notes })
}

pub(super) fn capture(capture: &Capture) -> Section {
    let mut rows = Vec::new();
    for device in &capture.devices {
        rows.push(busy_row(&device.device, "(whole capture)", device.kernels, &device.busy));
    }
    for lane in &capture.lanes {
        let name = named(&lane.lane, lane.rank);
        rows.extend(lane.stages.iter().map(|s| busy_row(&name, &s.stage, s.windows, &s.busy)));
        rows.push(busy_row(&name, "(between stages)", lane.iterations, &lane.between));
    }
    let of = match (&capture.lane, capture.iterations) {
        (Some(lane), Some((first, last))) => format!(" of {}, iterations {first} to {last}", harmless(lane)),
        _ => String::new(),
    };
    let headings = vec!["where", "stage", "count", "window ms", "busy ms", "idle ms", "busy"];
    Section {
        title: format!("kernel capture {}{of}", harmless(&capture.file)),
        names: 2,
        headings,
        rows,
        notes: capture_notes(capture),
    }
}

fn busy_row(place: &str, stage: &str, count: u64, busy: &Busy) -> Vec<String> {
    let time = |ns: u64| if busy.window_ns > 0 { milliseconds(ns as f64) } else { UNKNOWN.into() };
    vec![
        harmless(place),
        harmless(stage),
        grouped(count),
        time(busy.window_ns),
        time(busy.busy_ns),
        time(busy.idle_ns),
        known(busy.share().map(percent)),
    ]
}

fn capture_notes(capture: &Capture) -> Vec<String> {
    let Discarded { unknown, negative, backwards, endless } = capture.discarded;
    let mut notes = vec![format!(
        "{} kernels, copies and fills; {} discarded ({unknown} without a time, {negative} negative, {backwards} end before \
         they begin, {endless} longer than a week)",
        grouped(capture.kernels),
        grouped(capture.discarded.total())
    )];
    notes.extend(capture.waits.iter().filter(|waits| waits.calls > 0).map(|waits| {
        let (total, unsaid) = (duration(waits.total_ns), duration(waits.unsaid_ns));
        let (name, calls, outside) = (harmless(&waits.thread), grouped(waits.calls), grouped(waits.unsaid));
        format!("{name} waited for a device in {calls} calls, {total}; {outside} of them outside of sync.*, {unsaid}")
    }));
    let cut: u64 = capture.lanes.iter().map(|lane| lane.cut).sum();
    if cut > 0 {
        notes.push(format!("{} device spans reach over the capture's ends and do not count", grouped(cut)));
    }
    notes.extend(capture.blind.iter().map(|blind| format!("not seen: {}", harmless(blind))));
    notes.extend(capture.problems.iter().map(|problem| format!("warning: {}", harmless(problem))));
    notes
}
