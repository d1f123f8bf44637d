//! Counters with their readings: what every section that reads counters begins with.

use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Counter, CounterId, Sample};
use serde::Serialize;

/// A wanted counter, what its name says, and its readings.
pub(crate) type Series<'a, T> = (&'a Counter, T, Vec<Sample>);

/// What is said about the readings of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Readings.
    pub readings: u64,
    /// Their plain mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Range {
    /// `None` if there are no readings.
    pub(crate) fn of(samples: &[Sample]) -> Option<Self> {
        let values = || samples.iter().map(|sample| sample.value);
        let readings = samples.len() as u64;
        (readings > 0).then(|| Self {
            readings,
            mean: values().sum::<f64>() / readings as f64,
            min: values().fold(f64::INFINITY, f64::min),
            max: values().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The counters whose name `parse` understands, with their readings in the window. Readings that are no finite number
/// are left out, and so are counters without a reading.
pub(crate) fn series<'a, T>(
    timeline: &'a Timeline,
    window: &Window,
    parse: impl Fn(&'a Counter) -> Option<T>,
) -> Vec<Series<'a, T>> {
    let wanted = timeline.counters.iter().map(|counter| {
        let parsed = parse(counter).filter(|_| window.has_rank(counter.rank));
        parsed.map(|parsed| (counter, parsed, Vec::new()))
    });
    let mut all: Vec<Option<Series<'a, T>>> = wanted.collect();
    for sample in &timeline.samples {
        let CounterId(id) = sample.counter;
        if let Some(Some((_, _, samples))) = all.get_mut(id as usize)
            && window.has_time(sample.time_ns)
            && sample.value.is_finite()
        {
            samples.push(*sample);
        }
    }
    all.into_iter().flatten().filter(|(_, _, samples)| !samples.is_empty()).collect()
}

/// How much a counter that only grows grew. A step back is a start from 0 (a resumed run).
pub(crate) fn growth(samples: &[Sample]) -> f64 {
    let step =
        |pair: &[Sample]| if pair[1].value < pair[0].value { pair[1].value } else { pair[1].value - pair[0].value };
    samples.windows(2).map(step).sum()
}

/// Seconds from the first reading to the last; `None` if there are none between.
pub(crate) fn seconds(samples: &[Sample]) -> Option<f64> {
    let ns = samples.last()?.time_ns - samples.first()?.time_ns;
    (ns > 0).then_some(ns as f64 / 1e9)
}
