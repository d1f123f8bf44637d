//! What a row of metrics.csv is called in TensorBoard.

use dflash_profiler::timeline::MetricsRow;

/// The known values of a row by tag.
pub(super) fn scalars(row: &MetricsRow) -> Vec<(String, f64)> {
    let named = [
        ("train/loss", row.loss),
        ("train/accuracy", row.accuracy),
        ("train/learning_rate", row.learning_rate),
        ("train/gradient_norm", row.gradient_norm),
        ("train/skipped_steps", row.skipped.map(|steps| steps as f64)),
        ("acceptance/tau", row.acceptance_length),
        ("acceptance/simulated", row.simulated_acceptance_length),
        ("acceptance/block", row.block_acceptance_length),
        ("throughput/tokens_per_s", row.tokens_per_s),
        ("throughput/supervised_tokens_per_s", row.supervised_tokens_per_s),
    ];
    let known = named.into_iter().filter_map(|(tag, value)| Some((tag.to_owned(), value?)));
    known.chain(of_slots("accuracy", &row.slots)).chain(of_slots("loss", &row.slot_losses)).collect()
}

fn of_slots<'a>(what: &'a str, values: &'a [f64]) -> impl Iterator<Item = (String, f64)> + 'a {
    values.iter().enumerate().map(move |(slot, value)| (format!("slots/{what}_{}", slot + 1), *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_has_no_tag() {
        let row = MetricsRow {
            loss: Some(1.5),
            skipped: Some(2),
            slots: vec![0.5],
            slot_losses: vec![3.0],
            ..MetricsRow::default()
        };
        let expected =
            [("train/loss", 1.5), ("train/skipped_steps", 2.0), ("slots/accuracy_1", 0.5), ("slots/loss_1", 3.0)];
        assert_eq!(scalars(&row), expected.map(|(tag, value)| (tag.to_owned(), value)));
    }
}
