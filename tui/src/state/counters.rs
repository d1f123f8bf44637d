//! The counters' histories, gathered in one pass over the samples: there may be thousands a second.

use dflash_reports::timeline::Timeline;

use super::series::{Bins, Means};

/// One counter's readings up to the end of the window.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Time and value of the newest finite reading.
    pub newest: Option<(i64, f64)>,
    /// The newest reading before the window.
    pub before: Option<f64>,
    means: Option<Means>,
}

impl History {
    /// Means over the parts of the window; `None` where nothing was read.
    #[must_use]
    pub fn curve(&self) -> Vec<Option<f64>> {
        self.means.as_ref().map(Means::values).unwrap_or_default()
    }
}

/// Fills gaps of at most `most` parts with the reading before: between two samples nothing is unknown, but a sensor that
/// has fallen silent is.
pub fn bridged(mut curve: Vec<Option<f64>>, most: usize) -> Vec<Option<f64>> {
    let mut newest: Option<(usize, f64)> = None;
    for at in 0..curve.len() {
        match (curve[at], newest) {
            (Some(value), Some((before, held))) => {
                if at - before <= most {
                    curve[before + 1..at].fill(Some(held));
                }
                newest = Some((at, value));
            }
            (Some(value), None) => newest = Some((at, value)),
            (None, _) => {}
        }
    }
    // The part after the newest sample, up to the next one that may come.
    if let Some((before, held)) = newest {
        let end = curve.len();
        if end - before <= most {
            curve[before + 1..end].fill(Some(held));
        }
    }
    curve
}

/// Histories of all counters, in the order of [`Timeline::counters`].
#[derive(Clone, Debug, Default)]
pub struct Histories(Vec<History>);

impl Histories {
    /// Gathers them up to `last_ns`; curves over `bins`.
    #[must_use]
    pub fn of(timeline: &Timeline, bins: Bins, (from_ns, last_ns): (i64, i64)) -> Self {
        let mut all = vec![History::default(); timeline.counters.len()];
        for sample in timeline.samples.iter().take_while(|sample| sample.time_ns <= last_ns) {
            let Some(history) = all.get_mut(sample.counter.0 as usize).filter(|_| sample.value.is_finite()) else {
                continue;
            };
            history.newest = Some((sample.time_ns, sample.value));
            if sample.time_ns < from_ns {
                history.before = Some(sample.value);
            } else {
                history.means.get_or_insert_default().add(bins.index(sample.time_ns), sample.value);
            }
        }
        Self(all)
    }

    /// One for each counter.
    pub fn all(&self) -> impl Iterator<Item = &History> {
        self.0.iter()
    }

    /// The history of a counter by its place.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&History> {
        self.0.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_are_bridged_and_silence_is_not() {
        let curve = vec![None, Some(1.0), None, Some(2.0), None, None, None, Some(3.0), None];
        let (one, three) = (Some(1.0), Some(3.0));
        assert_eq!(bridged(curve, 2), [None, one, one, Some(2.0), None, None, None, three, three]);
    }
}
