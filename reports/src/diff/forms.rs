//! The comparison as a table, as Markdown, CSV and JSON.

use super::{Call, Clock, Comparison, Cut, Outcome, Row};
use crate::error::Result;
use crate::report::escaped;
use crate::text::{Grid, Look, Style, UNKNOWN, harmless, milliseconds};
use std::fmt::Write as _;

const HEADINGS: [&str; 9] = ["stage", "A ms", "B ms", "change", "interval", "p", "n", "effective n", "verdict"];

impl Comparison {
    /// The comparison as a table for people.
    #[must_use]
    pub fn table(&self, look: Look) -> String {
        let mut text = look.paint(Style::Bold, &self.headline()) + "\n";
        for (lane, rows) in self.lanes() {
            let mut grid = Grid::default();
            grid.row(HEADINGS, Some(Style::Dim));
            for row in rows {
                grid.row(cells(row), style(row));
            }
            let _ = write!(text, "\n{}\n{}", look.paint(Style::Bold, &lane), grid.text("  ", true, look));
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
            for row in rows {
                let _ = writeln!(text, "| {} |", cells(row).map(|cell| escaped(&cell)).join(" | "));
            }
        }
        text.push('\n');
        for line in self.foot() {
            let _ = writeln!(text, "- {}", escaped(&line));
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

    /// One row per stage: `rank,lane,stage,clock,verdict,gates,a_p50_ns,b_p50_ns,ratio,ratio_low,ratio_high,p,n_a,n_b,
    /// effective_n_a,effective_n_b`; what is not known is an empty field.
    ///
    /// # Errors
    /// If writing fails.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        writer.write_record([
            "rank",
            "lane",
            "stage",
            "clock",
            "verdict",
            "gates",
            "a_p50_ns",
            "b_p50_ns",
            "ratio",
            "ratio_low",
            "ratio_high",
            "p",
            "n_a",
            "n_b",
            "effective_n_a",
            "effective_n_b",
        ])?;
        for row in &self.rows {
            writer.write_record(csv_fields(row))?;
        }
        writer.into_inner().map_err(|e| e.into_error().into())
    }

    /// The outcome in one line, with the stages that it is about.
    #[must_use]
    pub fn headline(&self) -> String {
        let named = |wanted: &[Call]| {
            let rows = self.rows.iter().filter(|row| row.gates && wanted.contains(&row.call)).map(name);
            harmless(&rows.collect::<Vec<_>>().join(", "))
        };
        let improved = named(&[Call::Improved]);
        let better = if improved.is_empty() { String::new() } else { format!("; improved: {improved}") };
        match self.outcome {
            Outcome::Regressed => format!("regressed: {}{better}", named(&[Call::Regressed])),
            Outcome::Inconclusive => {
                let unsure = named(&[Call::Inconclusive, Call::Missing, Call::New]);
                format!("no regression found, but inconclusive: {unsure}{better}")
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

    /// What makes the log auditable.
    fn foot(&self) -> Vec<String> {
        let options = &self.options;
        let mut lines = vec![
            format!("A: {}", harmless(&self.a.join(", "))),
            format!("B: {}", harmless(&self.b.join(", "))),
            format!(
                "threshold {:.1} %, floor {:.0} µs, alpha {}, {} over {} tests; interval of the ratio of medians at {:.0} %",
                options.threshold * 100.0,
                options.floor_ns / 1e3,
                options.alpha,
                self.correction,
                self.tests,
                (1.0 - options.alpha) * 100.0
            ),
            format!("warm-up cut (MSER-5): A {}; B {}", cuts(&self.cuts_a), cuts(&self.cuts_b)),
            format!("set apart (not `train`): A {}, B {} iterations", self.set_apart.0, self.set_apart.1),
        ];
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

fn cuts(cuts: &[Cut]) -> String {
    let cut = |c: &Cut| format!("{} {} of {}", harmless(&c.lane), c.cut, c.of);
    if cuts.is_empty() { "none known".into() } else { cuts.iter().map(cut).collect::<Vec<_>>().join(", ") }
}

fn name(row: &Row) -> String {
    let clock = if row.key.clock == Clock::Device { " (device)" } else { "" };
    format!("{} {}{clock}", row.key.lane, row.key.stage)
}

fn cells(row: &Row) -> [String; 9] {
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    let change = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0).replace("-0.0", "+0.0");
    let pair = |(a, b): (usize, usize)| format!("{a}/{b}");
    let effective = row.effective_n.0.zip(row.effective_n.1).map(|(a, b)| format!("{a:.0}/{b:.0}"));
    let verdict = match &row.reason {
        Some(reason) => format!("{} ({reason})", row.call.as_str()),
        None if !row.gates && row.call == Call::Regressed => "longer wait (does not gate)".into(),
        None => row.call.as_str().to_owned(),
    };
    let clock = if row.key.clock == Clock::Device { " (device)" } else { "" };
    [
        format!("{}{clock}", harmless(&row.key.stage)),
        known(row.median_a_ns.map(milliseconds)),
        known(row.median_b_ns.map(milliseconds)),
        known(row.ratio.map(change)),
        known(row.interval.map(|(low, high)| format!("{} … {}", change(low), change(high)))),
        known(row.p.map(|p| if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") })),
        pair(row.n),
        known(effective),
        verdict,
    ]
}

fn csv_fields(row: &Row) -> [String; 16] {
    let number = |value: Option<f64>, digits: usize| value.map_or_else(String::new, |v| format!("{v:.digits$}"));
    let clock = if row.key.clock == Clock::Device { "device" } else { "host" };
    [
        row.key.rank.to_string(),
        row.key.lane.clone(),
        row.key.stage.clone(),
        clock.to_owned(),
        row.call.as_str().to_owned(),
        row.gates.to_string(),
        number(row.median_a_ns, 1),
        number(row.median_b_ns, 1),
        number(row.ratio, 6),
        number(row.interval.map(|i| i.0), 6),
        number(row.interval.map(|i| i.1), 6),
        number(row.p, 6),
        row.n.0.to_string(),
        row.n.1.to_string(),
        number(row.effective_n.0, 1),
        number(row.effective_n.1, 1),
    ]
}

fn style(row: &Row) -> Option<Style> {
    match row.call {
        _ if !row.gates => Some(Style::Dim),
        Call::Regressed => Some(Style::Red),
        Call::Improved => Some(Style::Green),
        Call::Inconclusive | Call::Missing | Call::New => Some(Style::Yellow),
        Call::NoChange => None,
    }
}
