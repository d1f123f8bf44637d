//! Why and for how long a GPU was clocked down, from readings of `gpu.<device>.throttle`, whose bits are NVML's reasons.

use dflash_timeline::record::Sample;
use serde::Serialize;

/// NVML's bits of nothing to do, of clocks that somebody chose and of sync boost are no throttling.
const CALM: u64 = 0x1 | 0x2 | 0x10 | 0x100;

/// NVML's other bits, and words for them.
const REASONS: [(u64, &str); 6] = [
    (POWER_CAP, "power cap"),
    (0x8, "hardware slow-down"),
    (0x20, "temperature (software)"),
    (0x40, "temperature (hardware)"),
    (0x80, "power brake"),
    (!(CALM | POWER_CAP | 0x8 | 0x20 | 0x40 | 0x80), "a reason that this version does not know"),
];

/// NVML's bit of the power cap: where a GPU that works hard always is.
const POWER_CAP: u64 = 0x4;

/// Whether a reading says that the GPU was slower than it always is: the power cap alone says no such thing.
pub(crate) fn is_slowed(bits: f64) -> bool {
    bits.max(0.0) as u64 & !(CALM | POWER_CAP) != 0
}

/// Time with one reason to clock down; reasons may come together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// In words.
    pub reason: &'static str,
    /// Nanoseconds.
    pub ns: u64,
}

/// What the readings say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Throttled {
    /// Share of the readings with a reason.
    pub share: f64,
    /// Time with a reason, each reading held until the next; `None` of a single reading.
    pub ns: Option<u64>,
    /// Reasons that came up.
    pub reasons: Vec<Reason>,
}

pub(super) fn throttled(samples: &[Sample]) -> Throttled {
    let bits = |sample: &Sample| sample.value.max(0.0) as u64 & !CALM;
    let count = samples.iter().filter(|sample| bits(sample) != 0).count();
    let held = |mask: u64| -> u64 {
        let pairs = samples.windows(2).filter(|pair| bits(&pair[0]) & mask != 0);
        pairs
            .map(|pair| u64::try_from(pair[1].time_ns.saturating_sub(pair[0].time_ns)).unwrap_or(0))
            .fold(0, u64::saturating_add)
    };
    let came_up = |mask: u64| samples.iter().any(|sample| bits(sample) & mask != 0);
    let reasons = REASONS.into_iter().filter(|(mask, _)| came_up(*mask));
    Throttled {
        share: count as f64 / samples.len().max(1) as f64,
        ns: (samples.len() > 1).then(|| held(u64::MAX)),
        reasons: reasons.map(|(mask, reason)| Reason { reason, ns: held(mask) }).collect(),
    }
}
