//! How much of the drafters' time trained.

use super::{Section, share};
use crate::report::Report;
use crate::text::grouped;

/// Nothing at all where no iteration was recorded.
pub(super) fn section(report: &Report) -> Option<Section> {
    let goodput = report.goodput.as_ref()?;
    let row = |(part, ns): (&str, u64)| vec![part.to_owned(), seconds(ns), share(ns, goodput.total_ns)];
    let mut rows: Vec<Vec<String>> = goodput.parts().into_iter().map(row).collect();
    rows.push(vec!["total".into(), seconds(goodput.total_ns), share(goodput.total_ns, goodput.total_ns)]);
    let notes = match goodput.restarts {
        0 => Vec::new(),
        1 => vec!["1 restart: what it did again counts as lost".to_owned()],
        many => vec![format!("{} restarts: what they did again counts as lost", grouped(many))],
    };
    let headings = vec!["drafters' time", "s", "share"];
    Some(Section { title: "goodput".into(), names: 1, headings, rows, notes })
}

fn seconds(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e9)
}
