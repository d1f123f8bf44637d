//! Reproducible chance: what is resampled is the same on every machine and in every run.

/// A stream of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..count`; `count` must not be 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // The upper half of the product is even enough for the counts that memory holds.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Puts a slice into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let other = self.below(i + 1);
            items.swap(i, other);
        }
    }
}

#[cfg(test)]
impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
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

#[cfg(test)]
mod tests {
    use super::Noise;

    #[test]
    fn all_are_drawn_about_equally_often() {
        let mut noise = Noise::new(7);
        let mut seen = [0_u32; 5];
        (0..50_000).for_each(|_| seen[noise.below(5)] += 1);
        assert!(seen.iter().all(|count| (9_600..10_400).contains(count)), "{seen:?}");
        let mut items: Vec<usize> = (0..100).collect();
        noise.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
