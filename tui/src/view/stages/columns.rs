//! The columns of the stage table: what each shows, and which stay when it gets narrow.

use dflash_reports::stats::Stats;
use ratatui::text::Span;

use crate::view::format::{self, known};
use crate::view::text;
use crate::view::theme::Tone;
use crate::view::write::piece;

/// The least and the most that a curve takes.
const CURVE: (usize, usize) = (10, 120);

/// What a row is about: its statistics, those of its device, its share, its change against the baseline.
pub struct Figures<'a> {
    pub host: &'a Stats,
    pub device: Option<&'a Stats>,
    pub share: f64,
    pub change: Option<f64>,
}

/// A column: its heading, its width, and the number of a row.
pub struct Column {
    pub title: &'static str,
    pub width: usize,
    value: fn(&Figures) -> String,
}

const COLUMNS: [Column; 8] = [
    Column { title: "count", width: 7, value: |of| format::whole(of.host.count as f64) },
    Column { title: "mean ms", width: 8, value: |of| format::milliseconds(of.host.mean_ns) },
    Column { title: "p50 ms", width: 8, value: |of| format::milliseconds(of.host.p50_ns as f64) },
    Column { title: "p95 ms", width: 8, value: |of| format::milliseconds(of.host.p95_ns as f64) },
    Column { title: "GPU p50", width: 8, value: |of| known(of.device, |d| format::milliseconds(d.p50_ns as f64)) },
    Column { title: "GPU p95", width: 8, value: |of| known(of.device, |d| format::milliseconds(d.p95_ns as f64)) },
    Column { title: "share", width: 6, value: |of| format::percent(of.share) },
    Column { title: "change", width: 8, value: |of| known(of.change, change) },
];

/// Which columns stay when it gets narrow, the most telling first. The last one only with a baseline, and then first.
const PRIORITY: [usize; 7] = [6, 1, 2, 3, 0, 4, 5];
const CHANGE: usize = 7;
/// Smaller changes than this are not coloured: `dflash diff` says which ones are real.
const WORTH_SAYING: f64 = 0.05;

fn change(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

/// Widths of the parts of a line.
pub struct Widths {
    pub name: usize,
    pub columns: Vec<&'static Column>,
    pub curve: usize,
}

/// A row's numbers.
pub fn cells(of: &Figures, widths: &Widths) -> Vec<Span<'static>> {
    let cell = |column: &&Column| {
        let value = (column.value)(of);
        let as_tone = match of.change {
            _ if value == format::UNKNOWN => Tone::Dim,
            Some(change) if column.title == "change" && change >= WORTH_SAYING => Tone::Warn,
            Some(change) if column.title == "change" && change <= -WORTH_SAYING => Tone::Good,
            _ => Tone::Plain,
        };
        piece(&format!(" {}", text::right(&value, column.width)), as_tone)
    };
    widths.columns.iter().map(cell).collect()
}

/// The columns for which there is room beside names of `name` columns; that of changes only if they are `compared`.
pub fn widths(width: usize, name: usize, compared: bool) -> Widths {
    let mut room = width - name;
    let mut chosen = Vec::new();
    for index in compared.then_some(CHANGE).into_iter().chain(PRIORITY) {
        if COLUMNS[index].width < room {
            room -= COLUMNS[index].width + 1;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    let curve = if room >= CURVE.0 + 2 { (room - 2).min(CURVE.1) } else { 0 };
    Widths { name, columns: chosen.into_iter().map(|index| &COLUMNS[index]).collect(), curve }
}
