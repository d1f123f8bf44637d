//! The page's frame: head, style, sections, foot; and the escaping that everything goes through.

use crate::report::Report;
use crate::report::table::{foot, head as lines};
use crate::report::warnings::warnings;
use crate::text::{UNKNOWN, duration, grouped, harmless};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// No script and no connection, whatever may stand in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// A page that grows.
pub(super) struct Page {
    html: String,
}

/// A text that came out of a file, harmless in HTML and its attributes.
pub(super) fn escaped(text: &str) -> String {
    let text = harmless(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        let _ = writeln!(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
        html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        html.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n");
        let _ = writeln!(html, "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>", escaped(title));
        Self { html }
    }

    /// Appends HTML as it is.
    pub(super) fn raw(&mut self, html: &str) {
        self.html.push_str(html);
        self.html.push('\n');
    }

    /// Appends an element around a text, which is escaped.
    pub(super) fn element(&mut self, tag: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.html, "<{tag}{class}>{}</{tag}>", escaped(text));
    }

    pub(super) fn finish(mut self, report: &Report) -> String {
        self.raw("</main>\n<footer>");
        for line in foot(report) {
            self.element("p", "", &line);
        }
        self.element("p", "", &format!("dflash {}", env!("CARGO_PKG_VERSION")));
        self.raw("</footer>\n</body>\n</html>");
        self.html
    }
}

/// The run, its figures, who limits, and what to know before trusting the numbers.
pub(super) fn head(page: &mut Page, report: &Report, problems: &[String]) {
    page.raw("<header>");
    let name = report.run.as_ref().map_or("timeline", |run| run.name.as_str());
    page.element("h1", "", name);
    figures(page, report);
    for line in lines(report).iter().skip(1) {
        page.element("p", "verdict", line);
    }
    for warning in warnings(report).iter().chain(problems) {
        page.element("p", "warning", warning);
    }
    page.raw("</header>");
}

fn figures(page: &mut Page, report: &Report) {
    let throughput = &report.throughput;
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    let run = report.run.as_ref();
    let trained = report.goodput.filter(|goodput| goodput.total_ns > 0);
    let trained = trained.map(|goodput| goodput.productive_ns as f64 / goodput.total_ns as f64);
    let facts = [
        ("state", known(run.map(|run| run.state.clone()))),
        ("length", known(throughput.wall_ns.map(duration))),
        ("tokens/s", known(throughput.tokens_per_s.map(|rate| grouped(rate.round() as u64)))),
        ("goodput", known(trained.map(|share| format!("{:.0} %", share * 100.0)))),
        ("tau", known(run.and_then(|run| run.tau).map(|tau| format!("{tau:.2}")))),
        ("host", known(run.map(|run| run.host.clone()).filter(|host| !host.is_empty()))),
    ];
    page.raw("<dl class=\"facts\">");
    for (what, value) in facts {
        page.raw(&format!("<div><dt>{what}</dt><dd>{}</dd></div>", escaped(&value)));
    }
    page.raw("</dl>");
}
