//! Student's t distribution: its cumulative distribution and quantiles.

/// P(T ≤ t) for `df` degrees of freedom.
pub(super) fn cdf(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 1.0 } else { 0.0 };
    }
    let tail = 0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// P(T > t), precise in the far tail.
pub(super) fn upper_tail(t: f64, df: f64) -> f64 {
    cdf(-t, df)
}

/// The t that is exceeded with probability `tail` (below one half), by bisection.
pub(super) fn upper_quantile(tail: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, df) > tail && high < 1e12 {
        high *= 2.0;
    }
    while high - low > 1e-9 * high {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle, df) > tail { low = middle } else { high = middle }
    }
    high
}

/// Regularised incomplete beta function, by its continued fraction (Numerical Recipes, 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(x, a, b) / a
    } else {
        1.0 - front * continued_fraction(1.0 - x, b, a) / b
    }
}

/// Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guarded = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guarded(1.0 + even * d);
        c = guarded(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guarded(1.0 + odd * d);
        c = guarded(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// Logarithm of the gamma function for positive numbers (Lanczos, g = 7).
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = (1..).zip(C).map(|(i, c)| c / (x + f64::from(i))).sum::<f64>() + 0.999_999_999_999_809_9;
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

#[cfg(test)]
mod tests {
    use super::{cdf, upper_quantile, upper_tail};

    #[test]
    fn agrees_with_the_tables() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-3 * b.abs(), "{a} is not {b}");
        close(upper_quantile(0.025, 1.0), 12.706);
        close(upper_quantile(0.025, 4.0), 2.776);
        close(upper_quantile(0.025, 19.0), 2.093);
        close(upper_quantile(0.0005, 10.0), 4.587);
        close(upper_quantile(0.025, 1e6), 1.95997);
        close(upper_tail(2.0, 8.0), 0.040_26);
        close(cdf(0.0, 5.0), 0.5);
        close(upper_tail(-1.0, 1.0), 0.75);
    }
}
