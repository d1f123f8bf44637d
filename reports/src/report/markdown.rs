//! The report as Markdown, for pull requests and notes.

use super::Report;
use super::table::{HEADINGS, cells, foot, head, lane_title, total_cells, warnings};
use crate::text::{harmless, percent};
use std::fmt::Write as _;

/// Writes the report as Markdown tables.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for line in head(report) {
        let _ = writeln!(text, "{}\n", escaped(&line));
    }
    for warning in warnings(&report.losses) {
        let _ = writeln!(text, "> **Warning:** {}\n", escaped(&warning));
    }
    for lane in &report.stages.lanes {
        let _ = writeln!(text, "### {}\n", escaped(&lane_title(lane)));
        push_row(&mut text, HEADINGS.into_iter().map(str::to_owned).chain(["share".to_owned()]));
        let rule = std::iter::once("---").chain(std::iter::repeat_n("---:", HEADINGS.len()));
        push_row(&mut text, rule.map(str::to_owned));
        for row in &lane.rows {
            // Markdown drops leading spaces, so nesting is shown by an arrow.
            let name = format!("{}{}", "↳ ".repeat(usize::from(row.depth)), escaped(&harmless(&row.stage)));
            push_row(&mut text, cells(name, row).into_iter().chain([percent(row.share)]));
        }
        push_row(&mut text, total_cells(lane).into_iter().chain([percent(1.0)]));
        text.push('\n');
    }
    for line in foot(report) {
        let _ = writeln!(text, "- {}", escaped(&line));
    }
    text
}

fn push_row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Makes characters harmless that Markdown or a browser would act on.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}
