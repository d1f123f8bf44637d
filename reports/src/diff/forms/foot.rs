//! What stands below the table: where the change comes from, and what makes a log auditable.

use crate::diff::{Comparison, Cut, Fact, Options};
use crate::text::{UNKNOWN, harmless};

/// Names that a line lists before it counts the rest.
const LISTED: usize = 12;

/// Names in one line; a foreign file may have a million.
pub(in crate::diff) fn list(names: &[String]) -> String {
    let shown = names.get(..LISTED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Options {
    /// When a change counted, in one line.
    pub(in crate::diff) fn line(&self, tests: usize) -> String {
        format!(
            "threshold {:.1} %, floor {:.0} µs, alpha {}, {} over {tests} tests; intervals of ratios at {:.0} %",
            self.threshold * 100.0,
            self.floor_ns / 1e3,
            self.alpha,
            self.correction.as_str(),
            (1.0 - self.alpha) * 100.0
        )
    }
}

impl Comparison {
    pub(super) fn foot(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for change in self.attribution.iter().take(LISTED) {
            lines.push(change.says.clone());
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!("A: {}", harmless(&self.a.join(", "))));
        lines.push(format!("B: {}", harmless(&self.b.join(", "))));
        lines.extend(facts(&self.facts));
        lines.push(self.options.line(self.tests));
        lines.push(format!("warm-up cut (MSER-5): A {}; B {}", cuts(&self.cuts_a), cuts(&self.cuts_b)));
        let throttled = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        lines.push(format!(
            "set apart: not `train`: A {}, B {} iterations; throttled: A {}, B {}",
            self.set_apart.0,
            self.set_apart.1,
            throttled(self.throttled.0),
            throttled(self.throttled.1)
        ));
        lines.extend(self.notes.iter().map(|note| format!("note: {}", harmless(note))));
        lines
    }
}

/// What is the same in one line, what differs in one each.
fn facts(facts: &[Fact]) -> Vec<String> {
    let known = |value: &Option<String>| harmless(value.as_deref().unwrap_or("unknown"));
    let (differ, same): (Vec<&Fact>, Vec<&Fact>) = facts.iter().partition(|fact| fact.differs);
    let one = |fact: &&Fact| match (&fact.a, &fact.b) {
        (a, b) if a == b => format!("{} {}", fact.what, known(a)),
        (a, b) => format!("{} A {}, B {}", fact.what, known(a), known(b)),
    };
    let mut lines = vec![same.iter().map(one).collect::<Vec<_>>().join("; ")];
    lines.retain(|line| !line.is_empty());
    lines.extend(
        differ
            .into_iter()
            .map(|fact| format!("differs: {}: A {}, B {}", harmless(&fact.what), known(&fact.a), known(&fact.b))),
    );
    lines
}

fn cuts(cuts: &[Cut]) -> String {
    let cut = |c: &Cut| format!("{} {} of {}", harmless(&c.lane), c.cut, c.of);
    let cuts: Vec<String> = cuts.iter().map(cut).collect();
    if cuts.is_empty() { UNKNOWN.to_owned() } else { list(&cuts) }
}
