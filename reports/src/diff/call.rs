//! The verdict on each stage, and on the whole.

use super::estimates::{Known, all, medians, p95s};
use super::row::{Change, Row};
use super::side::{Clock, Key, Side};
use super::{Options, decide};
use crate::stages::{RESIDUE, TOTAL};
use serde::Serialize;

/// The verdict on one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Surely slower, by more than the threshold.
    Regressed,
    /// Surely faster, by more than the threshold.
    Improved,
    /// Surely within the threshold.
    NoChange,
    /// Not sure.
    Inconclusive,
    /// Only side A has it.
    Missing,
    /// Only side B has it.
    New,
}

impl Call {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::NoChange => "no change",
            Self::Inconclusive => "inconclusive",
            Self::Missing => "missing",
            Self::New => "new",
        }
    }
}

/// What the comparison means as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that gates is sure, and nothing got slower.
    Fine,
    /// Something got slower.
    Regressed,
    /// Nothing is surely slower, but not everything is sure or has its like.
    Inconclusive,
}

impl Outcome {
    /// The outcome of all rows that gate.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        if rows.iter().any(Row::is_regression) {
            Self::Regressed
        } else if rows.iter().any(Row::is_open) {
            Self::Inconclusive
        } else {
            Self::Fine
        }
    }
}

/// One percentile of one stage that has a ratio.
struct Tested {
    row: usize,
    p95: bool,
    ratio: decide::Ratio,
    bounds: decide::Bounds,
}

/// Compares every stage that either side has; also how many tests that took.
pub(super) fn rows(a: &Side, b: &Side, options: &Options) -> (Vec<Row>, usize) {
    let keys = ordered(a, b);
    let known = all(&keys, a, b);
    let mut rows: Vec<Row> = keys.iter().zip(&known).map(|(key, known)| Row::untested(key, known)).collect();
    for row in &mut rows {
        row.renamed_from = a.renamed.get(&row.key.stage).cloned();
    }
    let tested: Vec<Tested> =
        known.iter().enumerate().flat_map(|(row, known)| tests(row, known, &mut rows[row], options)).collect();
    let corrected = |bounds: fn(&decide::Bounds) -> (f64, f64)| {
        let p: Vec<f64> = tested.iter().map(|test| test.ratio.p(bounds(&test.bounds))).collect();
        options.correction.apply(&p)
    };
    let (plain, widened) = (corrected(|bounds| bounds.plain), corrected(|bounds| bounds.widened));
    for (test, p) in tested.iter().zip(plain.iter().zip(widened)) {
        let change = Change::of(&test.ratio, &test.bounds, (*p.0, p.1), options);
        let row = &mut rows[test.row];
        if test.p95 { row.p95.change = Some(change) } else { row.decide(change) }
    }
    (rows, tested.len())
}

/// Median and 95th percentile of a stage, where both sides have them.
fn tests(row: usize, known: &Known, into: &mut Row, options: &Options) -> Vec<Tested> {
    if known.a.is_empty() || known.b.is_empty() {
        return Vec::new();
    }
    let noisy = known.one_a_side() && !known.same;
    let mut tested = Vec::new();
    for (p95, a, b) in [(false, medians(&known.a), medians(&known.b)), (true, p95s(&known.a), p95s(&known.b))] {
        match known.ratio(&a, &b) {
            Ok(ratio) => {
                let bounds = decide::Bounds::of(decide::middle(&a), noisy, options);
                tested.push(Tested { row, p95, ratio, bounds });
            }
            Err(reason) if !p95 => into.reason = Some(reason),
            Err(_) => {}
        }
    }
    tested
}

/// Lanes in the order of side A, then those of B alone; in each `total` first and `residue` last.
fn ordered<'a>(a: &'a Side, b: &'a Side) -> Vec<&'a Key> {
    let mut seen = std::collections::HashSet::new();
    let mut keys: Vec<&Key> = a.keys().into_iter().chain(b.keys()).filter(|key| seen.insert(*key)).collect();
    let mut lanes: std::collections::HashMap<(u32, &str), usize> = std::collections::HashMap::new();
    for key in &keys {
        let next = lanes.len();
        lanes.entry((key.rank, &key.lane)).or_insert(next);
    }
    let place = |key: &Key| match key.stage.as_str() {
        TOTAL => 0,
        RESIDUE => 2,
        _ => 1,
    };
    keys.sort_by_cached_key(|key| (lanes[&(key.rank, key.lane.as_str())], key.clock == Clock::Device, place(key)));
    keys
}
