//! Ticks as nanoseconds of CLOCK_MONOTONIC, so that another process can compare them with its own clock.
//!
//! The map is a line, bent a little every second towards a freshly taken pair of clock readings. It never jumps and
//! never runs backwards: a jump would change the length of the spans across it, and the stages of an iteration would
//! no longer add up.

use std::collections::VecDeque;

/// Bends that are remembered: more than an hour of them. Ticks before the first lie on its line.
const BENDS: usize = 4096;
/// An error above this is no drift: a suspended machine, or a clock that was moved. The map then does jump.
const LOST_NS: f64 = 10e6;
/// Most by which a bend may change the rate.
const BEND: f64 = 5e-4;
/// Nanoseconds in which a bend shall make an error good: the time to the next pair.
const GOOD_NS: f64 = 1e9;

#[derive(Clone, Copy, Debug)]
struct Line {
    ticks: u64,
    ns: i64,
    ns_per_tick: f64,
}

impl Line {
    fn ns(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.ticks).cast_signed();
        self.ns.saturating_add((since as f64 * self.ns_per_tick).round() as i64)
    }
}

/// Maps ticks to nanoseconds.
#[derive(Debug)]
pub(crate) struct ClockMap {
    lines: VecDeque<Line>,
    first: (u64, i64),
    /// The rate as calibrated, until the pairs lie far enough apart to know better.
    nominal: f64,
}

impl ClockMap {
    /// Begins with a pair of readings and a rate.
    pub(crate) fn new(pair: (u64, i64), ns_per_tick: f64) -> Self {
        let line = Line { ticks: pair.0, ns: pair.1, ns_per_tick };
        Self { lines: VecDeque::from([line]), first: pair, nominal: ns_per_tick }
    }

    /// Bends the map towards a new pair.
    pub(crate) fn learn(&mut self, (ticks, ns): (u64, i64)) {
        let rate = self.rate(ticks, ns);
        if self.aim(ticks, ns, rate, GOOD_NS) {
            self.first = (ticks, ns);
        }
    }

    /// Bends the map so that, `good_ns` after these ticks, it will be where a clock is that shows `ns` now and runs at
    /// this rate. Returns whether it was lost, and has jumped.
    pub(crate) fn aim(&mut self, ticks: u64, ns: i64, rate: f64, good_ns: f64) -> bool {
        let here = self.ns(ticks);
        let error = (ns - here) as f64;
        let lost = error.abs() > LOST_NS;
        let line = if lost {
            Line { ticks, ns, ns_per_tick: self.nominal }
        } else {
            let bend = (error / good_ns).clamp(-BEND, BEND);
            Line { ticks, ns: here, ns_per_tick: rate * (1.0 + bend) }
        };
        if self.lines.len() == BENDS {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        lost
    }

    /// Nanoseconds of a tick.
    pub(crate) fn ns(&self, ticks: u64) -> i64 {
        // Nearly all ticks belong to the last second or two.
        let line = self.lines.iter().rev().find(|line| line.ticks <= ticks).or(self.lines.front());
        line.map_or(0, |line| line.ns(ticks))
    }

    fn rate(&self, ticks: u64, ns: i64) -> f64 {
        let (ticks, ns) = (ticks.saturating_sub(self.first.0) as f64, (ns - self.first.1) as f64);
        // A pair is known to some 50 ns: over 0.1 s that is 0.5 ppm, finer than the calibration of a busy machine, which has
        // been seen to be 130 ppm off.
        let measured = if ns > 0.09e9 { ns / ticks } else { self.nominal };
        measured.clamp(self.nominal * (1.0 - BEND), self.nominal * (1.0 + BEND))
    }
}

#[cfg(test)]
mod tests {
    use super::ClockMap;

    /// A counter of 2.5 ticks a nanosecond that truly runs 40 ppm fast, read once a second.
    fn pairs() -> impl Iterator<Item = (u64, i64)> {
        (0..60).map(|second| {
            let ns = 7_000_000_000 + second * 1_000_000_000;
            (1_000 + (second as f64 * 2.5e9 * 1.000_04) as u64, ns)
        })
    }

    #[test]
    fn follows_a_clock_that_drifts() {
        let mut pairs = pairs();
        let mut map = ClockMap::new(pairs.next().unwrap(), 0.4);
        for (second, pair) in pairs.enumerate() {
            let error = map.ns(pair.0) - pair.1;
            assert!(error.abs() < if second < 6 { 41_000 } else { 10 }, "{error} ns after {second} s");
            map.learn(pair);
        }
    }

    #[test]
    fn never_runs_backwards_nor_jumps() {
        let mut pairs = pairs();
        let mut map = ClockMap::new(pairs.next().unwrap(), 0.4);
        pairs.for_each(|pair| map.learn(pair));
        let mut last = map.ns(0);
        for ticks in (0..60 * 2_500_000_000_u64).step_by(2_500_000) {
            let ns = map.ns(ticks);
            assert!((999_000..1_001_000).contains(&(ns - last)) || ticks == 0, "{} ns at {ticks}", ns - last);
            last = ns;
        }
    }

    #[test]
    fn a_suspended_machine_is_a_jump() {
        let mut map = ClockMap::new((0, 0), 1.0);
        map.learn((1_000_000_000, 61_000_000_000));
        assert_eq!(map.ns(1_000_000_500), 61_000_000_500);
        assert_eq!(map.ns(999_999_999), 999_999_999, "what was before stays");
    }
}
