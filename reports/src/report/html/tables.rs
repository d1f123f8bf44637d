//! The page's tables: each lane's time as one bar, the stage tables, and all sections of the report.

use super::charts::colour;
use super::page::{Page, escaped};
use crate::report::Report;
use crate::report::sections::{Section, sections};
use crate::report::table::{HEADINGS, MOST_ROWS, cells, lane_title, more_rows, total_cells};
use crate::stages::{LaneTable, StageRow};
use crate::text::percent;
use std::fmt::Write as _;

/// Where each lane's time went, as a bar.
pub(super) fn shares(page: &mut Page, report: &Report) {
    if report.stages.lanes.iter().all(|lane| lane.iterations == 0) {
        return;
    }
    page.element("h2", "", "Where the time went");
    page.raw("<section class=\"card\">");
    for lane in report.stages.lanes.iter().filter(|lane| lane.iterations > 0) {
        page.element("p", "lane", &lane_title(lane));
        page.raw(&bar(lane));
    }
    page.raw("</section>");
}

fn bar(lane: &LaneTable) -> String {
    let rows: Vec<&StageRow> = lane.rows.iter().filter(|row| row.depth == 0).take(MOST_ROWS).collect();
    let names: Vec<String> = rows.iter().map(|row| row.stage.clone()).collect();
    let (mut html, mut legend) = (String::from("<div class=\"bar\">"), String::from("<ul class=\"legend\">"));
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.share >= 0.001) {
        let (class, name, share) = (colour(&names, at), escaped(&row.stage), percent(row.share));
        let width = row.share * 100.0;
        let _ = write!(html, "<i class=\"{class}\" style=\"width:{width:.2}%\" title=\"{name} {share}\"></i>");
        let _ = write!(legend, "<li><i class=\"{class}\"></i>{name} <b>{share}</b></li>");
    }
    html + "</div>" + &legend + "</ul>"
}

/// Every lane's stages in numbers.
pub(super) fn stages(page: &mut Page, report: &Report) {
    if report.stages.lanes.is_empty() {
        return;
    }
    page.element("h2", "", "Stages");
    page.element(
        "p",
        "note",
        "Per training iteration in which the stage ran; a second row where its device time is known.",
    );
    for lane in &report.stages.lanes {
        page.raw("<section class=\"card\">");
        page.element("h3", "", &lane_title(lane));
        open_table(page, &HEADINGS);
        for row in lane.rows.iter().take(MOST_ROWS) {
            let indent = "\u{a0}\u{a0}".repeat(usize::from(row.depth));
            let [host, device] = cells(format!("{indent}{}", row.stage), lane, row);
            host.iter().for_each(|cells| table_row(page, if row.depth > 0 { "dim" } else { "" }, cells));
            device.iter().for_each(|cells| table_row(page, "dim", cells));
        }
        let [host, device] = total_cells(lane);
        host.iter().for_each(|cells| table_row(page, "total", cells));
        device.iter().for_each(|cells| table_row(page, "dim", cells));
        page.raw("</tbody></table></div>");
        more_rows(lane).iter().for_each(|more| page.element("p", "note", more));
        page.raw("</section>");
    }
}

/// What stands below the stage tables in the other forms.
pub(super) fn others(page: &mut Page, report: &Report) {
    for section in sections(report) {
        other(page, &section);
    }
}

fn other(page: &mut Page, section: &Section) {
    if let Some(line) = section.absence() {
        page.element("p", "note", &line);
        return;
    }
    page.raw("<section class=\"card\">");
    page.element("h3", "", &section.title);
    if !section.rows.is_empty() {
        open_table(page, &section.headings);
        section.rows.iter().for_each(|row| table_row(page, "", row));
        page.raw("</tbody></table></div>");
    }
    if !section.notes.is_empty() {
        page.raw("<ul class=\"notes\">");
        section.notes.iter().for_each(|note| page.element("li", "", note));
        page.raw("</ul>");
    }
    page.raw("</section>");
}

fn open_table(page: &mut Page, headings: &[&str]) {
    let cells: String = headings.iter().map(|heading| format!("<th scope=\"col\">{}</th>", escaped(heading))).collect();
    page.raw(&format!("<div class=\"scroll\"><table><thead><tr>{cells}</tr></thead><tbody>"));
}

fn table_row(page: &mut Page, class: &str, cells: &[String]) {
    let mut html = format!("<tr class=\"{class}\">");
    for (at, cell) in cells.iter().enumerate() {
        let cell = escaped(cell);
        let _ = if at == 0 { write!(html, "<th scope=\"row\">{cell}</th>") } else { write!(html, "<td>{cell}</td>") };
    }
    page.raw(&(html + "</tr>"));
}
