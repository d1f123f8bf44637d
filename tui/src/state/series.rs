//! Values over time, in as many equal parts as a line of a screen may have columns.

use std::time::Duration;

/// Parts that a window is cut into; drawing averages them down to the columns it has.
pub const BINS: usize = 240;

/// The parts of a stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    from_ns: i64,
    width_ns: i64,
}

impl Bins {
    /// [`BINS`] parts of `from_ns..=to_ns`.
    pub fn new(from_ns: i64, to_ns: i64) -> Self {
        let width_ns = to_ns.saturating_sub(from_ns).max(0) / BINS as i64 + 1;
        Self { from_ns, width_ns }
    }

    /// How many parts a length of time takes.
    pub fn parts(self, length: Duration) -> usize {
        usize::try_from(length.as_nanos() as i64 / self.width_ns).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Where the first part begins.
    pub fn begin_ns(self) -> i64 {
        self.from_ns
    }

    /// The part that `time_ns` falls into; `None` if it falls into none.
    pub fn index(self, time_ns: i64) -> Option<usize> {
        let offset = time_ns.checked_sub(self.from_ns)?;
        usize::try_from(offset.div_euclid(self.width_ns)).ok().filter(|index| *index < BINS)
    }
}

/// Means of what was added, part by part.
#[derive(Clone, Debug)]
pub struct Means {
    sums: Vec<(f64, u32)>,
}

impl Default for Means {
    fn default() -> Self {
        Self { sums: vec![(0.0, 0); BINS] }
    }
}

impl Means {
    /// Adds a value to a part.
    pub fn add(&mut self, index: Option<usize>, value: f64) {
        if let Some((sum, count)) = index.and_then(|index| self.sums.get_mut(index)) {
            *sum += value;
            *count += 1;
        }
    }

    /// The means; `None` where nothing was added.
    pub fn values(&self) -> Vec<Option<f64>> {
        self.sums.iter().map(|(sum, count)| (*count > 0).then(|| sum / f64::from(*count))).collect()
    }
}

/// `values` in exactly `columns` columns: averaged where there are fewer columns, repeated where there are more.
#[must_use]
pub fn resample(values: &[Option<f64>], columns: usize) -> Vec<Option<f64>> {
    let part = |column: usize| {
        let first = column * values.len() / columns;
        let last = ((column + 1) * values.len() / columns).max(first + 1).min(values.len());
        let known: Vec<f64> = values[first..last].iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    if values.is_empty() { Vec::new() } else { (0..columns).map(part).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_of_the_window_has_its_part() {
        let bins = Bins::new(1000, 1000 + 479);
        assert_eq!(bins.index(999), None);
        assert_eq!(bins.index(1000), Some(0));
        assert_eq!(bins.index(1479), Some(239));
        assert_eq!(bins.index(1480), None);
        assert_eq!(Bins::new(i64::MIN, i64::MAX).index(i64::MAX), None);
        assert_eq!(Bins::new(5, 5).index(5), Some(0));
    }

    #[test]
    fn a_part_without_values_is_unknown_not_zero() {
        let mut means = Means::default();
        means.add(Some(1), 2.0);
        means.add(Some(1), 4.0);
        means.add(None, 100.0);
        assert_eq!(means.values()[..3], [None, Some(3.0), None]);
    }

    #[test]
    fn resampling_keeps_the_mean_and_the_gaps() {
        let values = [Some(1.0), Some(3.0), None, None, Some(5.0), None];
        assert_eq!(resample(&values, 3), [Some(2.0), None, Some(5.0)]);
        assert_eq!(resample(&values[..2], 4), [Some(1.0), Some(1.0), Some(3.0), Some(3.0)]);
        assert_eq!(resample(&[], 4), []);
    }
}
