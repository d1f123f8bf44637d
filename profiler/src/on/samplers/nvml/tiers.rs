//! When what is asked. Turns lie on a grid; those that are missed are left out, never caught up.

use std::time::Duration;

use crate::NvmlOptions;

/// NVML's own sample period is 1/6 s at best: asking more often repeats numbers.
const AT_MOST_EVERY: Duration = Duration::from_millis(200);

/// One kind of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// All that is cheap, of all devices.
    Fast,
    /// What costs milliseconds, of all devices.
    Slow,
    /// PCIe throughput of one device in one direction.
    Pcie,
}

/// Times of the next turns, since the sampler's start.
#[derive(Debug)]
pub(crate) struct Tiers {
    every: Duration,
    slow_every: Duration,
    pcie_every: Option<Duration>,
    fast: Duration,
    slow: Duration,
    pcie: Duration,
}

impl Tiers {
    /// The first turns come one interval after the start. `pcie_calls` is how many calls make a round of PCIe
    /// throughput; 0: it is not asked for.
    pub(crate) fn new(every: Duration, options: &NvmlOptions, pcie_calls: u32) -> Self {
        let every = every.max(AT_MOST_EVERY);
        let slow_every = options.slow_every.max(every);
        // Whole intervals, so that a call always falls between two fast turns.
        let intervals = slow_every.as_nanos() / (every.as_nanos() * u128::from(pcie_calls.max(1)));
        let intervals = u32::try_from(intervals).unwrap_or(u32::MAX).max(1);
        let pcie_every = (pcie_calls > 0).then(|| every.saturating_mul(intervals));
        Self { every, slow_every, pcie_every, fast: every, slow: slow_every, pcie: every / 2 }
    }

    /// How long until the next turn.
    pub(crate) fn rest(&self, now: Duration) -> Duration {
        let next = self.fast.min(self.slow);
        let next = if self.pcie_every.is_some() { next.min(self.pcie) } else { next };
        next.saturating_sub(now)
    }

    /// A turn that is due, if any; it is to be [`done`](Self::done) at once.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Tier> {
        if now >= self.fast {
            self.fast = after(now, self.fast, self.every);
            return Some(Tier::Fast);
        }
        if now >= self.slow {
            self.slow = after(now, self.slow, self.slow_every);
            return Some(Tier::Slow);
        }
        let pcie_every = self.pcie_every.filter(|_| now >= self.pcie)?;
        // One that is late would run into the next fast turn.
        let in_time = now <= self.pcie + self.every / 4;
        self.pcie = after(now, self.pcie, pcie_every);
        in_time.then_some(Tier::Pcie)
    }

    /// A turn has been done. One that took longer than its interval leaves out what it missed, so that a library that
    /// hangs a little is asked less often, not all the time.
    pub(crate) fn done(&mut self, tier: Tier, now: Duration) {
        let (point, every) = match tier {
            Tier::Fast => (&mut self.fast, self.every),
            Tier::Slow => (&mut self.slow, self.slow_every),
            Tier::Pcie => (&mut self.pcie, self.pcie_every.unwrap_or(self.every)),
        };
        if now >= *point {
            *point = after(now, *point, every);
        }
    }
}

/// The first point of the grid after `now`.
fn after(now: Duration, point: Duration, every: Duration) -> Duration {
    let missed = now.saturating_sub(point).as_nanos() / every.as_nanos().max(1);
    point + every.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Tier, Tiers};
    use crate::NvmlOptions;

    const SECOND: Duration = Duration::from_secs(1);

    /// Turns up to a time, in milliseconds, when each wakes up `late`.
    fn turns(tiers: &mut Tiers, until: Duration, late: Duration) -> Vec<(u128, Tier)> {
        let (mut now, mut turns) = (Duration::ZERO, Vec::new());
        loop {
            now += tiers.rest(now) + late;
            if now > until {
                return turns;
            }
            turns.extend(std::iter::from_fn(|| tiers.due(now)).map(|tier| (now.as_millis(), tier)));
        }
    }

    #[test]
    fn each_second_and_each_ten() {
        let mut tiers = Tiers::new(SECOND, &NvmlOptions::default(), 0);
        let turns = turns(&mut tiers, 20 * SECOND, Duration::ZERO);
        let expected = (1..=20).flat_map(|second| {
            let slow = (second % 10 == 0).then_some((second * 1000, Tier::Slow));
            [(second * 1000, Tier::Fast)].into_iter().chain(slow)
        });
        assert_eq!(turns, expected.collect::<Vec<_>>());
    }

    #[test]
    fn pcie_calls_are_spread_and_lie_between_fast_turns() {
        // Two GPUs: four calls in ten seconds, one each 2.5 intervals, so each second one.
        let mut tiers = Tiers::new(SECOND, &NvmlOptions::default(), 4);
        let all = turns(&mut tiers, 20 * SECOND, Duration::ZERO);
        let pcie: Vec<_> = all.iter().filter(|turn| turn.1 == Tier::Pcie).map(|turn| turn.0).collect();
        assert_eq!(pcie, [500, 2500, 4500, 6500, 8500, 10500, 12500, 14500, 16500, 18500]);
        // Eight GPUs: a round takes longer than slow_every rather than two calls in one interval.
        let mut tiers = Tiers::new(SECOND, &NvmlOptions::default(), 16);
        let all = turns(&mut tiers, 16 * SECOND, Duration::ZERO);
        assert_eq!(all.iter().filter(|turn| turn.1 == Tier::Pcie).count(), 16);
        assert!(all.iter().all(|(at, tier)| (*tier == Tier::Pcie) == (at % 1000 == 500)), "{all:?}");
    }

    #[test]
    fn missed_turns_are_left_out() {
        let mut tiers = Tiers::new(SECOND, &NvmlOptions::default(), 2);
        let now = 35 * SECOND + SECOND / 10;
        assert_eq!(std::iter::from_fn(|| tiers.due(now)).collect::<Vec<_>>(), [Tier::Fast, Tier::Slow]);
        assert_eq!(tiers.rest(now), SECOND / 10 * 4, "the late PCIe turn is dropped, the next is on the grid");
        assert_eq!(tiers.due(now + SECOND / 10 * 4), Some(Tier::Pcie));
        assert_eq!(tiers.rest(36 * SECOND), Duration::ZERO);
        assert_eq!(tiers.rest(100 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_turn_that_takes_longer_than_its_interval_is_followed_by_a_rest() {
        let mut tiers = Tiers::new(SECOND, &NvmlOptions::default(), 0);
        assert_eq!(tiers.due(SECOND), Some(Tier::Fast));
        let now = 3 * SECOND + SECOND / 4;
        tiers.done(Tier::Fast, now);
        assert_eq!(tiers.due(now), None);
        assert_eq!(tiers.rest(now), SECOND / 4 * 3);
    }

    #[test]
    fn nothing_is_asked_faster_than_it_is_measured() {
        let options = NvmlOptions { slow_every: Duration::ZERO, ..NvmlOptions::default() };
        let mut tiers = Tiers::new(Duration::from_nanos(1), &options, 1);
        let turns = turns(&mut tiers, SECOND, Duration::from_millis(1));
        let count = |wanted| turns.iter().filter(|turn| turn.1 == wanted).count();
        assert_eq!((count(Tier::Fast), count(Tier::Slow), count(Tier::Pcie)), (4, 4, 5));
    }
}
