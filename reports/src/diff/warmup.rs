//! The warm-up cut: MSER-5, the rule of White (1997), on medians instead of means so that one slow iteration late in a
//! run cannot move the cut.

/// Values per batch.
const BATCH: usize = 5;
/// Fewer values than this are taken as they are.
const WORTH_CUTTING: usize = 8 * BATCH;

/// The number of leading values to drop: the cut after which the remaining batches have the smallest standard error.
/// At most half are dropped.
pub(super) fn cut(values: &[f64]) -> usize {
    if values.len() < WORTH_CUTTING {
        return 0;
    }
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(median_of_batch).collect();
    let (mut sum, mut squares, mut kept) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    // Sums about the last value, which is near the steady level, lose no digits.
    let level = batches.last().copied().unwrap_or(0.0);
    for (cut, value) in batches.iter().enumerate().rev() {
        let value = value - level;
        (sum, squares, kept) = (sum + value, squares + value * value, kept + 1.0);
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if cut <= batches.len() / 2 && error <= best.0 {
            best = (error, cut);
        }
    }
    best.1 * BATCH
}

fn median_of_batch(batch: &[f64]) -> f64 {
    let mut sorted = batch.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_slow_start_is_cut_and_a_steady_run_is_not() {
        let wobble = |i: usize| ((i * 7919) % 13) as f64;
        let steady: Vec<f64> = (0..500).map(|i| 1000.0 + wobble(i)).collect();
        assert!(cut(&steady) <= 50, "{}", cut(&steady));
        let slow: Vec<f64> = (0..500).map(|i| 1000.0 + wobble(i) + if i < 40 { 800.0 } else { 0.0 }).collect();
        assert!((40..=60).contains(&cut(&slow)), "{}", cut(&slow));
    }

    #[test]
    fn short_runs_and_constant_ones_are_kept_whole() {
        assert_eq!(cut(&[5.0; 39]), 0);
        assert_eq!(cut(&[5.0; 400]), 0);
        assert_eq!(cut(&[]), 0);
    }
}
