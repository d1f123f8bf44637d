//! The verdict on each stage, and on the whole.

use super::Options;
use super::decide::{Bounds, Test, holm, test};
use super::side::{Clock, Key, Side};
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
        let any = |calls: &[Call]| rows.iter().any(|row| row.gates && calls.contains(&row.call));
        if any(&[Call::Regressed]) {
            Self::Regressed
        } else if any(&[Call::Inconclusive, Call::Missing, Call::New]) {
            Self::Inconclusive
        } else {
            Self::Fine
        }
    }
}

/// One stage of one lane, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which stage, by which clock.
    #[serde(flatten)]
    pub key: Key,
    /// The verdict.
    pub call: Call,
    /// Whether it counts for the outcome. Waiting does not, nor does device time that only one side has.
    pub gates: bool,
    /// Median of side A, nanoseconds.
    pub median_a_ns: Option<f64>,
    /// Median of side B.
    pub median_b_ns: Option<f64>,
    /// B ÷ A.
    pub ratio: Option<f64>,
    /// Its interval at level 1 - alpha, not corrected for the number of tests.
    pub interval: Option<(f64, f64)>,
    /// p-value of "no change beyond the threshold", corrected.
    pub p: Option<f64>,
    /// Iterations of A and B.
    pub n: (usize, usize),
    /// Independent iterations that would be as good.
    pub effective_n: (Option<f64>, Option<f64>),
    /// Why it is inconclusive.
    pub reason: Option<String>,
}

/// Compares every stage that either side has.
pub(super) fn rows(a: &Side, b: &Side, options: &Options) -> Vec<Row> {
    let keys = ordered(a, b);
    let mut rows: Vec<Row> = Vec::with_capacity(keys.len());
    let mut tested: Vec<(usize, Test, Bounds)> = Vec::new();
    for key in keys {
        let (of_a, of_b) = (a.observed(key), b.observed(key));
        let test = test(&of_a, &of_b);
        let row = Row::untested(key, &test, (of_a.is_empty(), of_b.is_empty()));
        if test.ratio.is_ok() && !of_a.is_empty() && !of_b.is_empty() {
            let bounds = Bounds::of(&test, options);
            tested.push((rows.len(), test, bounds));
        }
        rows.push(row);
    }
    let p = tested.iter().filter_map(|(_, test, bounds)| test.ratio.as_ref().ok().map(|r| r.p(bounds.called)));
    for ((at, test, bounds), p) in tested.iter().zip(holm(&p.collect::<Vec<_>>())) {
        rows[*at].decide(test, bounds, p, options);
    }
    rows
}

impl Row {
    fn untested(key: &Key, test: &Test, (no_a, no_b): (bool, bool)) -> Self {
        let call = match (no_a, no_b) {
            (true, _) => Call::New,
            (_, true) => Call::Missing,
            _ => Call::Inconclusive,
        };
        let waits = key.stage.ends_with(".wait") || key.stage.ends_with(".put");
        let one_sided_device = key.clock == Clock::Device && (no_a || no_b);
        Self {
            key: key.clone(),
            call,
            gates: !waits && !one_sided_device,
            median_a_ns: (!no_a).then_some(test.median.0),
            median_b_ns: (!no_b).then_some(test.median.1),
            ratio: None,
            interval: None,
            p: None,
            n: test.n,
            effective_n: test.effective,
            reason: test.ratio.as_ref().err().filter(|_| call == Call::Inconclusive).cloned(),
        }
    }

    fn decide(&mut self, test: &Test, bounds: &Bounds, p: f64, options: &Options) {
        let Ok(ratio) = &test.ratio else { return };
        let (low, high) = ratio.interval(options.alpha);
        self.ratio = Some(ratio.log.exp());
        self.interval = Some((low.exp(), high.exp())).filter(|(low, high)| low.is_finite() && high.is_finite());
        self.p = Some(p);
        let (down, up) = bounds.same;
        (self.call, self.reason) = if p <= options.alpha {
            (if ratio.log > 0.0 { Call::Regressed } else { Call::Improved }, None)
        } else if low >= down && high <= up {
            (Call::NoChange, None)
        } else {
            (Call::Inconclusive, Some(unsure((low, high), bounds)))
        };
    }
}

fn unsure((low, high): (f64, f64), bounds: &Bounds) -> String {
    let (down, up) = bounds.called;
    let beyond_same = low > bounds.same.1 || high < bounds.same.0;
    match (low > up || high < down, beyond_same) {
        (true, _) => "not sure enough among so many stages".into(),
        (_, true) => "beyond the threshold, but runs of the same program may differ by as much".into(),
        _ => "the interval reaches over the threshold".into(),
    }
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
    keys.sort_by_key(|key| (lanes[&(key.rank, key.lane.as_str())], key.clock == Clock::Device, place(key)));
    keys
}
