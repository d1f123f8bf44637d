//! The comparison as CSV: one row per stage.

use crate::diff::{Clock, Comparison, Row};
use crate::error::Result;

const HEADER: [&str; 29] = [
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
    "beyond_run_noise",
    "renamed_from",
    "a_p95_ns",
    "b_p95_ns",
    "p95_verdict",
    "p95_ratio",
    "p95_ratio_low",
    "p95_ratio_high",
    "p95_p",
    "runs_a",
    "runs_b",
    "threshold",
    "alpha_correction",
];

impl Comparison {
    /// One row per stage: `rank,lane,stage,clock,verdict,gates`, the medians, their ratio with its interval at 1 - alpha,
    /// the corrected p, iterations and effective n of both sides, the same of the 95th percentiles, the number of runs,
    /// and when a change counted. What is not known is an empty field.
    ///
    /// # Errors
    /// If writing fails.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        writer.write_record(HEADER)?;
        let options = &self.options;
        let rule = [options.threshold.to_string(), format!("{} {}", options.alpha, options.correction.as_str())];
        for row in &self.rows {
            writer.write_record(fields(row).into_iter().chain(rule.clone()))?;
        }
        writer.into_inner().map_err(|e| e.into_error().into())
    }
}

fn fields(row: &Row) -> [String; 27] {
    let number = |value: Option<f64>, digits: usize| value.map_or_else(String::new, |v| format!("{v:.digits$}"));
    let clock = if row.key.clock == Clock::Device { "device" } else { "host" };
    let p95 = row.p95.change.as_ref();
    let p95_interval = p95.and_then(|change| change.interval);
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
        row.beyond_run_noise.to_string(),
        row.renamed_from.clone().unwrap_or_default(),
        number(row.p95.a_ns, 1),
        number(row.p95.b_ns, 1),
        p95.map_or_else(String::new, |change| change.call.as_str().to_owned()),
        number(p95.map(|change| change.ratio), 6),
        number(p95_interval.map(|i| i.0), 6),
        number(p95_interval.map(|i| i.1), 6),
        number(p95.map(|change| change.p), 6),
        row.runs.0.to_string(),
        row.runs.1.to_string(),
    ]
}
