//! How long an iteration's time is remembered by those after it.

/// Longest autocorrelation that is looked for.
const LONGEST_LAG: usize = 1000;

/// Integrated autocorrelation time, at least 1, by Geyer's initial monotone sequence, looking no
/// further than six times its length (Sokal), behind which there is but noise. Values are clipped first, to the 5th and
/// 95th percentile: one slow iteration would otherwise hide how the rest hang together.
pub(super) fn time(values: &[f64], [low, high]: [f64; 2]) -> f64 {
    let clipped = || values.iter().map(|v| v.clamp(low, high));
    let mean = clipped().sum::<f64>() / values.len() as f64;
    let centred: Vec<f64> = clipped().map(|v| v - mean).collect();
    let whole = covariance(&centred, 0);
    if whole <= 0.0 {
        return 1.0;
    }
    let (mut time, mut least): (f64, f64) = (-1.0, f64::INFINITY);
    for lag in (0..LONGEST_LAG.min(centred.len() / 4)).step_by(2) {
        let pair = (covariance(&centred, lag) + covariance(&centred, lag + 1)) / whole;
        least = pair.min(least);
        if pair <= 0.0 || lag as f64 > 6.0 * time.max(1.0) {
            break;
        }
        time += 2.0 * least;
    }
    time.max(1.0)
}

/// Sum of products of values `lag` apart, in four sums side by side: one alone would wait for itself.
fn covariance(centred: &[f64], lag: usize) -> f64 {
    let later = centred.get(lag..).unwrap_or_default();
    let (a, b) = (centred.get(..later.len()).unwrap_or_default(), later);
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a4.zip(b4) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::{covariance, time};
    use crate::diff::noise::Noise;

    fn of(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let clip = [5, 95].map(|percent| crate::stats::percentile(&sorted, percent).unwrap_or(0.0));
        time(values, clip)
    }

    #[test]
    fn of_an_autoregressive_series_is_what_theory_says() {
        let mut noise = Noise::new(1);
        let independent: Vec<f64> = (0..2000).map(|_| noise.normal()).collect();
        assert!(of(&independent) < 1.6);
        // (1 + rho) / (1 - rho)
        for (rho, low, high) in [(0.3, 1.6, 2.1), (0.6, 3.5, 4.5), (0.8, 7.5, 10.5)] {
            let mean = (0..30).map(|_| of(&noise.autoregressive(2000, rho))).sum::<f64>() / 30.0;
            assert!((low..high).contains(&mean), "rho {rho}: {mean}");
        }
    }

    #[test]
    fn nothing_and_constants_are_independent() {
        assert!((of(&[]) - 1.0).abs() < 1e-12);
        assert!((of(&[4.0; 100]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_sums_side_by_side_are_the_plain_sum() {
        let values: Vec<f64> = (0..23).map(|i| f64::from(i * i % 7)).collect();
        for lag in [0, 1, 5, 22, 23, 40] {
            let plain: f64 = values.iter().zip(values.iter().skip(lag)).map(|(a, b)| a * b).sum();
            assert!((covariance(&values, lag) - plain).abs() < 1e-9, "{lag}");
        }
    }
}
