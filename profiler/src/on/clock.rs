//! Where ticks come from: the processor's counter where the kernel itself trusts it, else the kernel's clock.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// A source of ticks. Cheap to clone: each lane has its own.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The time stamp counter; ticks are the processor's.
    Counter(quanta::Clock),
    /// CLOCK_MONOTONIC (what `std::time::Instant` reads); ticks are its nanoseconds.
    Kernel,
}

impl Clock {
    /// The process's clock. The first call calibrates it, up to 200 ms.
    pub(crate) fn get() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(Self::choose).clone()
    }

    fn choose() -> Self {
        // Counters that differ from core to core exist; the kernel checks for them and then avoids `tsc`.
        let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        if source.is_ok_and(|name| name.trim() == "tsc") { Self::Counter(quanta::Clock::new()) } else { Self::Kernel }
    }

    /// Now, in ticks. Never 0, which means "no time" where ticks are stored.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        match self {
            Self::Counter(clock) => clock.raw(),
            Self::Kernel => dflash_sys::monotonic_ns().cast_unsigned(),
        }
    }

    /// How long so many ticks are.
    pub(crate) fn duration(&self, ticks: u64) -> Duration {
        match self {
            Self::Counter(clock) => Duration::from_nanos(clock.delta_as_nanos(0, ticks)),
            Self::Kernel => Duration::from_nanos(ticks),
        }
    }

    /// How many ticks so many nanoseconds are.
    pub(crate) fn ticks_in(&self, ns: u64) -> u64 {
        let ns_per_tick = self.duration(1 << 30).as_nanos() as f64 / (1_u64 << 30) as f64;
        (ns as f64 / ns_per_tick) as u64
    }

    /// The same moment in ticks and on CLOCK_MONOTONIC: the closest of a few tries, since any may be interrupted.
    pub(crate) fn pair(&self) -> (u64, i64) {
        let attempt = |_| {
            let before = self.ticks();
            let monotonic_ns = dflash_sys::monotonic_ns();
            let after = self.ticks();
            (after.saturating_sub(before), before + after.saturating_sub(before) / 2, monotonic_ns)
        };
        let (_, ticks, monotonic_ns) = (0..8).map(attempt).min_by_key(|(width, _, _)| *width).unwrap_or_default();
        (ticks, monotonic_ns)
    }
}
