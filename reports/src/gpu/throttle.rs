//! Why and for how long a GPU was clocked down, from readings of `gpu.<device>.throttle`, whose bits are NVML's reasons.

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

/// What the readings say so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Throttled {
    readings: u64,
    /// Of those, with a reason.
    with: u64,
    held_ns: u64,
    /// By reason: whether it came up, and for how long.
    reasons: [(bool, u64); REASONS.len()],
}

fn bits(value: f64) -> u64 {
    value.max(0.0) as u64 & !CALM
}

impl Throttled {
    /// Takes a reading.
    pub(crate) fn count(&mut self, value: f64) {
        let bits = bits(value);
        self.readings += 1;
        self.with += u64::from(bits != 0);
        let came_up = self.reasons.iter_mut().zip(REASONS).filter(|(_, (mask, _))| bits & mask != 0);
        came_up.for_each(|((came_up, _), _)| *came_up = true);
    }

    /// Says that a reading was held for so long.
    pub(crate) fn hold(&mut self, value: f64, ns: u64) {
        let bits = bits(value);
        if bits == 0 {
            return;
        }
        self.held_ns = self.held_ns.saturating_add(ns);
        let those = self.reasons.iter_mut().zip(REASONS).filter(|(_, (mask, _))| bits & mask != 0);
        those.for_each(|((_, sum), _)| *sum = sum.saturating_add(ns));
    }

    /// Share of the readings with a reason.
    pub(super) fn share(&self) -> f64 {
        self.with as f64 / self.readings.max(1) as f64
    }

    /// Time with a reason, each reading held until the next; `None` of a single reading.
    pub(super) fn ns(&self) -> Option<u64> {
        (self.readings > 1).then_some(self.held_ns)
    }

    /// Reasons that came up.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let all = self.reasons.iter().zip(REASONS).filter(|((came_up, _), _)| *came_up);
        all.map(|((_, ns), (_, reason))| Reason { reason, ns: *ns }).collect()
    }
}
