//! The report as Markdown, for pull requests and notes.

use super::Report;
use super::sections::{Section, sections};
use super::table::{HEADINGS, MOST_ROWS, cells, foot, head, lane_title, more_rows, total_cells};
use super::warnings::warnings;
use crate::text::harmless;
use std::fmt::Write as _;

/// Writes the report as Markdown tables.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for line in head(report) {
        let _ = writeln!(text, "{}\n", escaped(&line));
    }
    for warning in warnings(report) {
        let _ = writeln!(text, "> **Warning:** {}\n", escaped(&warning));
    }
    for lane in &report.stages.lanes {
        let _ = writeln!(text, "### {}\n", escaped(&lane_title(lane)));
        push_head(&mut text, &HEADINGS);
        for row in lane.rows.iter().take(MOST_ROWS) {
            // Markdown drops leading spaces, so nesting is shown by an arrow.
            let name = format!("{}{}", "↳ ".repeat(usize::from(row.depth)), escaped(&harmless(&row.stage)));
            cells(name, lane, row).into_iter().flatten().for_each(|cells| push_row(&mut text, cells));
        }
        total_cells(lane).into_iter().flatten().for_each(|cells| push_row(&mut text, cells));
        text.push('\n');
        if let Some(more) = more_rows(lane) {
            let _ = writeln!(text, "{more}\n");
        }
    }
    for line in foot(report) {
        let _ = writeln!(text, "- {}", escaped(&line));
    }
    for section in sections(report) {
        push_section(&mut text, &section);
    }
    text
}

fn push_section(text: &mut String, section: &Section) {
    if let Some(line) = section.absence() {
        let _ = writeln!(text, "\n{}", escaped(&line));
        return;
    }
    let _ = writeln!(text, "\n### {}\n", escaped(&section.title));
    if !section.rows.is_empty() {
        push_head(text, &section.headings);
        for row in &section.rows {
            push_row(text, row.iter().map(|cell| escaped(cell)));
        }
        text.push('\n');
    }
    for note in &section.notes {
        let _ = writeln!(text, "- {}", escaped(note));
    }
}

fn push_head(text: &mut String, headings: &[&str]) {
    push_row(text, headings.iter().map(|heading| escaped(heading)));
    let rule = std::iter::once("---").chain(std::iter::repeat_n("---:", headings.len().saturating_sub(1)));
    push_row(text, rule.map(str::to_owned));
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
