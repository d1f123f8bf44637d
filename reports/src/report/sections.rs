//! What stands below the stage tables, section by section, ready for the table and for Markdown.

mod cost;
mod devices;
mod goodput;
mod memory;
mod queues;
mod ranks;

use super::Report;
use crate::text::{Grid, Look, Style, UNKNOWN, harmless, percent};
use std::fmt::Write as _;

/// A heading, a table and some lines; either of the latter may be missing.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub title: String,
    /// Columns at the front that hold names; the others hold numbers.
    pub names: usize,
    pub headings: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
}

/// All sections, in order.
pub(super) fn sections(report: &Report) -> Vec<Section> {
    let mut all = Vec::new();
    all.extend(ranks::places(report));
    all.extend(ranks::peers(report));
    all.extend(queues::depths(report));
    all.extend(queues::handoffs(report));
    all.extend(goodput::section(report));
    all.push(cost::section(report));
    all.extend(memory::section(report));
    all.extend(devices::gpus(report));
    all.extend(devices::gaps(report));
    all.extend(report.captures.iter().map(devices::capture));
    all.extend(devices::limiting(report));
    all.extend(cost::cpu_samples(report));
    all
}

/// A section that has only a line, because nothing was recorded for it.
fn absent(title: &str, why: &str) -> Section {
    Section { title: title.to_owned(), notes: vec![format!("{UNKNOWN} ({why})")], ..Section::default() }
}

impl Section {
    /// The one line of a section for which nothing was recorded.
    pub(super) fn absence(&self) -> Option<String> {
        match self.notes.as_slice() {
            [why] if self.headings.is_empty() => Some(format!("{}: {why}", self.title)),
            _ => None,
        }
    }

    /// As text.
    pub(super) fn text(&self, look: Look) -> String {
        if let Some(line) = self.absence() {
            return format!("\n{line}\n");
        }
        let mut text = format!("\n{}\n", look.paint(Style::Bold, &self.title));
        if !self.rows.is_empty() {
            let mut grid = Grid::default();
            grid.texts(0..self.names);
            grid.row(self.headings.iter().copied(), Some(Style::Dim));
            for row in &self.rows {
                grid.row(row.iter().map(String::as_str), None);
            }
            text.push_str(&grid.text("  ", false, look));
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        text
    }
}

/// A lane's or a device's name, with its rank from 1 on.
fn named(name: &str, rank: u32) -> String {
    if rank > 0 { format!("{}, rank {rank}", harmless(name)) } else { harmless(name) }
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.into())
}

/// A share with two decimals: costs are small.
fn fine_percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn share(part: u64, whole: u64) -> String {
    known((whole > 0).then(|| percent(part as f64 / whole as f64)))
}

/// Bytes in GiB.
fn gibibytes(bytes: f64) -> String {
    format!("{:.2} GiB", bytes / f64::from(1 << 30))
}
