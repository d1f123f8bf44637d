//! One row in words and numbers.

use crate::diff::{Call, Clock, Row};
use crate::text::{UNKNOWN, harmless, milliseconds};

pub(super) const HEADINGS: [&str; 10] =
    ["stage", "A ms", "B ms", "change", "interval", "p95 change (interval)", "p", "n", "effective n", "verdict"];

/// Lane and stage, with the rank and the clock where they are not the usual ones.
pub(in crate::diff) fn name(row: &Row) -> String {
    let rank = if row.key.rank == 0 { String::new() } else { format!("rank {} ", row.key.rank) };
    format!("{rank}{} {}{}", row.key.lane, row.key.stage, clock(row))
}

fn clock(row: &Row) -> &'static str {
    if row.key.clock == Clock::Device { " (device)" } else { "" }
}

pub(super) fn cells(row: &Row) -> [String; 10] {
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    let pair = |(a, b): (usize, usize)| format!("{a}/{b}");
    let effective = row.effective_n.0.zip(row.effective_n.1).map(|(a, b)| format!("{a:.0}/{b:.0}"));
    let p95 = row.p95.change.as_ref().map(|p95| {
        let interval = p95.interval.map_or_else(|| UNKNOWN.into(), between);
        format!("{} ({interval})", change(p95.ratio))
    });
    [
        format!("{}{}", harmless(&row.key.stage), clock(row)),
        known(row.median_a_ns.map(milliseconds)),
        known(row.median_b_ns.map(milliseconds)),
        known(row.ratio.map(change)),
        known(row.interval.map(between)),
        known(p95),
        known(row.p.map(|p| if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") })),
        pair(row.n),
        known(effective),
        verdict(row),
    ]
}

fn change(ratio: f64) -> String {
    let text = format!("{:+.1} %", (ratio - 1.0) * 100.0);
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

fn between((low, high): (f64, f64)) -> String {
    format!("{} … {}", change(low), change(high))
}

fn verdict(row: &Row) -> String {
    let mut text = match (row.call, &row.reason) {
        (Call::Regressed, _) if !row.gates => "longer wait (does not gate)".to_owned(),
        (Call::Improved, _) if !row.gates => "shorter wait".to_owned(),
        (Call::Regressed, _) if row.beyond_run_noise => "regressed".to_owned(),
        (Call::Regressed, _) => "regressed (in these runs; within run noise)".to_owned(),
        (call, Some(reason)) => format!("{} ({reason})", call.as_str()),
        (call, None) => call.as_str().to_owned(),
    };
    match row.p95.change.as_ref().map(|p95| (p95.call, p95.beyond_run_noise)) {
        Some((Call::Regressed, true)) => text += "; p95 regressed",
        Some((Call::Regressed, false)) => text += "; p95 regressed (within run noise)",
        Some((Call::Improved, _)) => text += "; p95 improved",
        _ => {}
    }
    if let Some(old) = &row.renamed_from {
        text += &format!("; renamed from {}", harmless(old));
    }
    text
}
