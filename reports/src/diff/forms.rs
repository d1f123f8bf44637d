//! The comparison as a table, as Markdown, CSV and JSON.

mod calibration;
mod cells;
mod csv;
mod foot;

pub(super) use cells::name;
pub(super) use foot::list;

use super::{Call, Comparison, Outcome, Row};
use crate::error::Result;
use crate::report::escaped;
use crate::text::{Grid, Look, Style, harmless};
use cells::{HEADINGS, cells};
use std::fmt::Write as _;

/// Rows of a lane up to which a person is shown all of them.
const SHOWN: usize = 1000;

impl Comparison {
    /// The comparison as a table for people.
    #[must_use]
    pub fn table(&self, look: Look) -> String {
        let mut text = look.paint(Style::Bold, &self.headline()) + "\n";
        for (lane, rows) in self.lanes() {
            let mut grid = Grid::default();
            grid.row(HEADINGS, Some(Style::Dim));
            let (shown, more) = shown(rows);
            for row in shown {
                grid.row(cells(row), style(row));
            }
            let _ = write!(text, "\n{}\n{}{more}", look.paint(Style::Bold, &lane), grid.text("  ", true, look));
        }
        text.push('\n');
        for line in self.foot() {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// The comparison as Markdown tables.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("**{}**\n", escaped(&self.headline()));
        for (lane, rows) in self.lanes() {
            let _ = write!(text, "\n### {}\n\n| {} |\n", escaped(&lane), HEADINGS.join(" | "));
            let _ = writeln!(text, "| --- |{} --- |", " ---: |".repeat(HEADINGS.len() - 2));
            let (shown, more) = shown(rows);
            for row in shown {
                let _ = writeln!(text, "| {} |", cells(row).map(|cell| escaped(&cell)).join(" | "));
            }
            let _ = write!(text, "\n{more}");
        }
        text.push('\n');
        for line in self.foot().iter().filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "- {}", escaped(line));
        }
        text
    }

    /// The comparison as one JSON object. A number that is not known is `null`.
    ///
    /// # Errors
    /// If serialising fails.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The outcome in one line, with the stages that it is about.
    #[must_use]
    pub fn headline(&self) -> String {
        let named = |wanted: &dyn Fn(&Row) -> bool| {
            list(&self.rows.iter().filter(|row| wanted(row)).map(|row| harmless(&name(row))).collect::<Vec<_>>())
        };
        let improved = named(&|row| row.gates && row.call == Call::Improved);
        let better = if improved.is_empty() { String::new() } else { format!("; improved: {improved}") };
        match self.outcome {
            Outcome::Regressed => format!("regressed: {}{better}", named(&Row::is_regression)),
            Outcome::Inconclusive => {
                let within = named(&Row::is_within_run);
                let within = if within.is_empty() {
                    String::new()
                } else {
                    format!(" (regressed between these two runs, but other runs may differ by as much: {within})")
                };
                let unsure = named(&|row| row.is_open() && !row.is_within_run());
                let unsure = if unsure.is_empty() { unsure } else { format!(": {unsure}") };
                format!("no regression found, but inconclusive{within}{unsure}{better}")
            }
            Outcome::Fine => format!("no regression{better}"),
        }
    }

    /// Rows lane by lane, with the lanes' headings.
    fn lanes(&self) -> Vec<(String, &[Row])> {
        let chunks = self.rows.chunk_by(|a, b| (a.key.rank, &a.key.lane) == (b.key.rank, &b.key.lane));
        let title = |row: &Row| match row.key.rank {
            0 => harmless(&row.key.lane),
            rank => format!("{}, rank {rank}", harmless(&row.key.lane)),
        };
        chunks.filter_map(|rows| Some((title(rows.first()?), rows))).collect()
    }
}

/// The rows of a lane that a person is shown, and what is said of the rest.
fn shown(rows: &[Row]) -> (Vec<&Row>, String) {
    if rows.len() <= SHOWN {
        return (rows.iter().collect(), String::new());
    }
    let worth = |row: &&Row| row.is_regression() || row.is_within_run();
    let shown: Vec<&Row> = rows.iter().take(1).chain(rows.iter().skip(1).filter(worth)).take(SHOWN).collect();
    let more = format!(
        "  {} more rows, of {} in all; --format csv and json have them\n",
        rows.len() - shown.len(),
        rows.len()
    );
    (shown, more)
}

fn style(row: &Row) -> Option<Style> {
    match row.call {
        _ if row.is_regression() => Some(Style::Red),
        _ if row.is_within_run() => Some(Style::Yellow),
        _ if !row.gates => Some(Style::Dim),
        Call::Improved => Some(Style::Green),
        Call::Inconclusive | Call::Missing | Call::New => Some(Style::Yellow),
        Call::Regressed | Call::NoChange => None,
    }
}
