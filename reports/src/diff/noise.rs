//! Reproducible noise for the tests of the comparison: xorshift and Box-Muller.

/// A stream of pseudo-random numbers.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A standard normal value.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `n` values of mean 0 and variance 1 whose neighbours correlate by `rho`.
    pub(crate) fn autoregressive(&mut self, n: usize, rho: f64) -> Vec<f64> {
        let mut value = self.normal();
        let mut step = || {
            value = rho * value + (1.0 - rho * rho).sqrt() * self.normal();
            value
        };
        (0..n).map(|_| step()).collect()
    }
}
