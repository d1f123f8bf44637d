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
        let clock = source.is_ok_and(|name| name.trim() == "tsc").then(quanta::Clock::new);
        clock.filter(reads_the_counter).map_or(Self::Kernel, Self::Counter)
    }

    /// Now, in ticks. Never 0, which means "no time" where ticks are stored.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        match self {
            Self::Counter(clock) => counter(clock),
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

/// quanta reads the same counter, but by a call into it with a match in it: 2.7 ns a span.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter(_: &quanta::Clock) -> u64 {
    dflash_sys::counter()
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn counter(clock: &quanta::Clock) -> u64 {
    clock.raw()
}

/// Whether quanta, which calibrates, counts what [`counter`] counts: it falls back to the kernel's clock where it does not
/// find the counter good enough. Asked a few times, since the thread may move to another processor in between.
fn reads_the_counter(clock: &quanta::Clock) -> bool {
    (0..4).all(|_| {
        let (before, raw, after) = (counter(clock), clock.raw(), counter(clock));
        (before..=after).contains(&raw)
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Clock;

    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        let clock = Clock::get();
        let (begin, ticks) = (Instant::now(), clock.ticks());
        std::thread::sleep(Duration::from_millis(50));
        let measured = clock.duration(clock.ticks() - ticks);
        // Read inside of the other clock's two readings.
        let around = begin.elapsed();
        assert!(
            measured <= around.mul_f64(1.01) && measured >= Duration::from_millis(49),
            "{measured:?} of {around:?}"
        );
        let ns = clock.duration(clock.ticks_in(1_000_000)).as_nanos();
        assert!((999_990..=1_000_010).contains(&ns), "{ns}");
    }
}
