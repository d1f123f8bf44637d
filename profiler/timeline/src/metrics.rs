//! `metrics.csv`: what the training reached, step by step.
//!
//! | column | what |
//! |---|---|
//! | schema | version of this layout, 1 |
//! | attempt, step, time_ns | which start of the run, optimizer step, nanoseconds since 1970 |
//! | loss, accuracy | of the step |
//! | accuracy_1, accuracy_2, … | accuracy of the n-th drafted token |
//! | learning_rate, gradient_norm | of the step |
//! | acceptance_length | tau, on the steps that evaluated |
//! | tokens_per_s, supervised_tokens_per_s | throughput |
//! | simulated_acceptance_length | what the accuracies would give if tokens missed independently, without the target's own |
//! | block_acceptance_length | leading right tokens of a block and the target's own, mean over the blocks |
//! | skipped | steps of this attempt so far whose loss or gradient was no number |
//! | loss_1, loss_2, … | cross-entropy of the n-th drafted token |
//!
//! A value that is not known is an empty field.

use std::path::Path;
use std::str::FromStr;

use crate::appender::{Appender, known};
use crate::error::Result;
use crate::table::{self, Row};

/// Version of metrics.csv that this crate writes.
pub const METRICS_SCHEMA: u32 = 1;

const COLUMNS: [&str; 11] = [
    "schema",
    "attempt",
    "step",
    "time_ns",
    "loss",
    "accuracy",
    "learning_rate",
    "gradient_norm",
    "acceptance_length",
    "tokens_per_s",
    "supervised_tokens_per_s",
];

/// Columns that older files lack; their order is that of the file.
const LATER: [&str; 3] = ["simulated_acceptance_length", "block_acceptance_length", "skipped"];

/// One line of metrics.csv.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsRow {
    /// Which start of the run, from 1.
    pub attempt: u32,
    /// Optimizer step.
    pub step: u64,
    /// When, nanoseconds since 1970.
    pub time_ns: i64,
    /// Loss of the step.
    pub loss: Option<f64>,
    /// Share of drafted tokens that were right.
    pub accuracy: Option<f64>,
    /// The same of the first, second, … drafted token; empty if not known.
    pub slots: Vec<f64>,
    /// Learning rate.
    pub learning_rate: Option<f64>,
    /// Norm of the gradient before clipping.
    pub gradient_norm: Option<f64>,
    /// Acceptance length tau.
    pub acceptance_length: Option<f64>,
    /// Context tokens a second, without padding.
    pub tokens_per_s: Option<f64>,
    /// Supervised tokens a second.
    pub supervised_tokens_per_s: Option<f64>,
    /// Acceptance length that the accuracies would give if tokens missed independently, without the target's own token.
    pub simulated_acceptance_length: Option<f64>,
    /// Mean over the blocks of their leading right tokens, and the target's own.
    pub block_acceptance_length: Option<f64>,
    /// Steps since the attempt's beginning whose loss or gradient was no number.
    pub skipped: Option<u64>,
    /// Cross-entropy of the first, second, … drafted token; empty if not known.
    pub slot_losses: Vec<f64>,
}

/// Appends to metrics.csv.
#[derive(Debug)]
pub struct MetricsWriter {
    csv: Appender,
    slots: usize,
}

impl MetricsWriter {
    /// Opens the file to append to it; a new one gets its header, with `slots` columns each of `accuracy_1`, … and
    /// `loss_1`, ….
    pub fn open(path: &Path, slots: usize) -> Result<Self> {
        let mut header: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
        header.splice(6..6, (1..=slots).map(|slot| format!("accuracy_{slot}")));
        header.extend(LATER.map(str::to_owned));
        header.extend((1..=slots).map(|slot| format!("loss_{slot}")));
        Ok(Self { csv: Appender::open(path, &header)?, slots })
    }

    /// Appends one row and hands it to the system, so that readers see it at once.
    pub fn write(&mut self, row: &MetricsRow) -> Result<()> {
        let mut fields = vec![
            METRICS_SCHEMA.to_string(),
            row.attempt.to_string(),
            row.step.to_string(),
            row.time_ns.to_string(),
            known(row.loss),
            known(row.accuracy),
        ];
        fields.extend((0..self.slots).map(|slot| known(row.slots.get(slot))));
        fields.extend([
            known(row.learning_rate),
            known(row.gradient_norm),
            known(row.acceptance_length),
            known(row.tokens_per_s),
            known(row.supervised_tokens_per_s),
            known(row.simulated_acceptance_length),
            known(row.block_acceptance_length),
            known(row.skipped),
        ]);
        fields.extend((0..self.slots).map(|slot| known(row.slot_losses.get(slot))));
        self.csv.write(&fields)?;
        self.csv.flush()
    }
}

/// Reads metrics.csv, without a last line that is still being written.
pub fn read_metrics(path: &Path) -> Result<Vec<MetricsRow>> {
    Ok(read_metrics_noting(path)?.0)
}

/// Reads metrics.csv; the second value says if a last, incomplete line was left out.
pub fn read_metrics_noting(path: &Path) -> Result<(Vec<MetricsRow>, Option<String>)> {
    table::read(path, &COLUMNS, parse)
}

fn parse(row: &Row<'_>) -> Result<MetricsRow> {
    let (whole, number) = ("a whole number", "a number");
    row.schema(0, METRICS_SCHEMA)?;
    Ok(MetricsRow {
        attempt: row.number(1, whole)?,
        step: row.number(2, whole)?,
        time_ns: row.number(3, "a whole number of nanoseconds")?,
        loss: row.optional(4, number)?,
        accuracy: row.optional(5, number)?,
        slots: slots(row, "accuracy")?,
        learning_rate: row.optional(6, number)?,
        gradient_norm: row.optional(7, number)?,
        acceptance_length: row.optional(8, number)?,
        tokens_per_s: row.optional(9, number)?,
        supervised_tokens_per_s: row.optional(10, number)?,
        simulated_acceptance_length: later(row, LATER[0])?,
        block_acceptance_length: later(row, LATER[1])?,
        skipped: later(row, LATER[2])?,
        slot_losses: slots(row, "loss")?,
    })
}

/// A value that older files have no column of.
fn later<T: FromStr>(row: &Row<'_>, column: &str) -> Result<Option<T>> {
    row.place(column).map(|place| row.number_at(place, "a number")).transpose()
}

/// The columns `accuracy_1`, … up to the first that is absent or empty.
fn slots(row: &Row<'_>, what: &str) -> Result<Vec<f64>> {
    (1..).map_while(|slot| row.place(&format!("{what}_{slot}"))).map(|place| row.number_at(place, "a number")).collect()
}
