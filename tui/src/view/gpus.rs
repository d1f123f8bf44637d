//! The GPUs: a table of their newest readings, and graphs of their history where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::format::{self, UNKNOWN, known};
use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{heat, spark, text};
use crate::state::{Extent, Gpu, MANY, Sensor, State, View, resample};

/// A column: its heading, its width, and what stands in it.
type Column = (&'static str, usize, fn(&Gpu) -> String);

const COLUMNS: [Column; 8] = [
    ("util", 6, |gpu| known(gpu.now(Sensor::Utilization), |percent| format!("{percent:.0} %"))),
    ("memory GiB", 14, memory),
    ("power W", 11, power),
    ("MHz", 6, |gpu| known(gpu.now(Sensor::Clock), |mhz| format!("{mhz:.0}"))),
    ("°C", 4, |gpu| known(gpu.now(Sensor::Temperature), |degrees| format!("{degrees:.0}"))),
    ("limited by", 10, |gpu| gpu.throttle().unwrap_or(UNKNOWN).to_owned()),
    ("NVLink out", 12, |gpu| known(gpu.now(Sensor::NvlinkTx), rate)),
    ("NVLink in", 12, |gpu| known(gpu.now(Sensor::NvlinkRx), rate)),
];

/// Which columns stay when it gets narrow, the most telling first.
const PRIORITY: [usize; 8] = [0, 2, 5, 1, 4, 3, 6, 7];

/// The graphs of a GPU, where there is room: what they show, their top, their heading.
const GRAPHS: [(Sensor, &str); 4] = [
    (Sensor::Utilization, "util %"),
    (Sensor::MemoryUsed, "memory"),
    (Sensor::Power, "power"),
    (Sensor::Temperature, "°C"),
];

fn memory(gpu: &Gpu) -> String {
    let gibibytes = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 30));
    match (gpu.now(Sensor::MemoryUsed), gpu.now(Sensor::MemoryTotal)) {
        (Some(used), Some(total)) => format!("{} of {}", gibibytes(used), gibibytes(total)),
        (used, _) => known(used, gibibytes),
    }
}

fn power(gpu: &Gpu) -> String {
    match (gpu.now(Sensor::Power), gpu.now(Sensor::PowerLimit)) {
        (Some(power), Some(limit)) => format!("{power:.0} of {limit:.0}"),
        (power, _) => known(power, |power| format!("{power:.0}")),
    }
}

fn rate(bytes: f64) -> String {
    format!("{} GB/s", format::three_digits(bytes / 1e9))
}

/// Draws the table from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let gpus = state.gpus();
    if gpus.is_empty() {
        return draw_none(area, frame, state);
    }
    let (name, columns) = choose(usize::from(area.width), &gpus);
    let each = lines_each(area.height.saturating_sub(1), gpus.len());
    let strip = if gpus.len() > MANY { heat::lines(&state.model, area.width).min(area.height / 4) } else { 0 };
    heat::draw(Rect { height: strip, ..area }, frame, &state.model);
    let area = Rect { y: area.y + strip, height: area.height - strip, ..area };
    draw_heading(area, frame, name, &columns, state);
    let page = (usize::from(area.height.saturating_sub(1)) / each).max(1);
    let last = gpus.len().saturating_sub(page);
    let first = state.scroll.min(last);
    for (index, gpu) in gpus[first..(first + page).min(gpus.len())].iter().enumerate() {
        let Ok(y) = u16::try_from(1 + index * each) else { break };
        if y >= area.height {
            break;
        }
        let place = Rect { y: area.y + y, height: (each as u16).min(area.height - y), ..area };
        draw_gpu(place, frame, gpu, name, &columns);
    }
    Extent { page, last, ..Extent::default() }
}

fn draw_none(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let words = "no GPU was read: the run has no counter gpu.* in this window (a training on the CPU, NVML not there, or \
                 its sampler switched off; the events say which)";
    let problems = state.model.losses.problems.iter().map(String::as_str);
    let mut lines = write::wrap(words, usize::from(area.width));
    lines.extend(problems.flat_map(|problem| write::wrap(problem, usize::from(area.width))));
    for (index, words) in lines.iter().enumerate() {
        write::line(area, frame, index, Line::from(piece(words, Tone::Dim)));
    }
    Extent::default()
}

/// Lines that the view would like: a table line and graphs for each GPU.
pub fn wanted_lines(state: &State) -> usize {
    let count = state.gpus().len();
    if count == 0 { 5 } else { 1 + count * if count > 8 { 1 } else { 6 } }
}

/// One line each, or more with graphs.
fn lines_each(height: u16, count: usize) -> usize {
    match usize::from(height) / count.max(1) {
        0..4 => 1,
        room => room.min(9),
    }
}

fn draw_heading(area: Rect, frame: &mut Buffer, name: usize, columns: &[&Column], state: &State) {
    let title = format!("GPU, {}", state.window.title());
    let mut pieces = vec![piece(&text::left(&title, name), Tone::Dim)];
    pieces
        .extend(columns.iter().map(|(title, width, _)| piece(&format!(" {}", text::right(title, *width)), Tone::Dim)));
    let order = match state.sorted_by(View::Gpus) {
        Some("device") | None if state.model.gpus.len() > MANY => "  worst first".to_owned(),
        Some("device") | None => String::new(),
        Some(by) => format!("  by {by}"),
    };
    pieces.push(piece(&order, Tone::Dim));
    write::line(area, frame, 0, Line::from(pieces));
}

fn draw_gpu(place: Rect, frame: &mut Buffer, gpu: &Gpu, name: usize, columns: &[&Column]) {
    let mut pieces = vec![piece(&text::left(&title(gpu), name), Tone::Strong)];
    if gpu.lost {
        pieces.push(piece(" lost: no answer for more than 15 s", Tone::Bad));
    } else {
        for (heading, width, value) in columns {
            let value = value(gpu);
            let as_tone = match *heading {
                _ if value == UNKNOWN => Tone::Dim,
                "limited by" if gpu.is_slowed() => Tone::Warn,
                _ => Tone::Plain,
            };
            pieces.push(piece(&format!(" {}", text::right(&value, *width)), as_tone));
        }
    }
    write::line(place, frame, 0, Line::from(pieces));
    if place.height >= 4 {
        draw_graphs(Rect { y: place.y + 1, height: place.height - 2, ..place }, frame, gpu);
    }
}

/// The graphs side by side: a heading, and the curve below it.
fn draw_graphs(area: Rect, frame: &mut Buffer, gpu: &Gpu) {
    let count = if area.width >= 100 { 4 } else { 2 };
    let width = area.width / count;
    for (index, (sensor, heading)) in (0..count).zip(GRAPHS) {
        let place = Rect { x: area.x + index * width, width: width.saturating_sub(1), ..area };
        let curve = resample(gpu.curve(sensor), usize::from(place.width.saturating_sub(7)));
        let most = curve.iter().flatten().copied().fold(0.0, f64::max);
        let top = match sensor {
            Sensor::MemoryUsed => gpu.now(Sensor::MemoryTotal).unwrap_or(most),
            Sensor::Power => gpu.now(Sensor::PowerLimit).unwrap_or(most).max(most),
            _ => 100.0,
        };
        write::line(place, frame, 0, Line::from(piece(&text::left(heading, 7), Tone::Dim)));
        if curve.is_empty() {
            write::line(place, frame, 1, Line::from(piece(UNKNOWN, Tone::Dim)));
        }
        let graph = Rect { x: place.x + 7, width: place.width.saturating_sub(7), ..place };
        spark::draw(graph, frame, &curve, top, tone(Tone::Area));
    }
}

fn title(gpu: &Gpu) -> String {
    let rank = if gpu.rank == 0 { String::new() } else { format!(" r{}", gpu.rank) };
    format!("{}{rank}{}", gpu.device, if gpu.mig { " MIG" } else { "" })
}

fn choose(width: usize, gpus: &[&Gpu]) -> (usize, Vec<&'static Column>) {
    let name = gpus.iter().map(|gpu| text::width(&text::clean(&title(gpu)))).max().unwrap_or(0).clamp(16, 24);
    let mut room = width.saturating_sub(name);
    let mut chosen = Vec::new();
    // NVLink takes room only where some GPU has it.
    let has_nvlink = gpus.iter().any(|gpu| gpu.now(Sensor::NvlinkTx).is_some());
    for index in PRIORITY.into_iter().filter(|index| *index < 6 || has_nvlink) {
        if COLUMNS[index].1 < room {
            room -= COLUMNS[index].1 + 1;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    (name, chosen.into_iter().map(|index| &COLUMNS[index]).collect())
}
