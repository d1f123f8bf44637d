//! Rounds in alternation: every subject once in every cycle, in another order each time, so that a machine that becomes
//! slower or faster does so for all of them.

use crate::subject::{SPANS, Subject};

/// Cycles before the measured ones: call sites register, threads start, memory is touched.
const WARM_UP: usize = 10;

/// Nanoseconds a span, by subject and cycle, as measured: the loop is in it.
pub fn alternate(subjects: &[&dyn Subject], cycles: usize) -> Vec<Vec<f64>> {
    let _entered: Vec<_> = subjects.iter().map(|subject| subject.enter()).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let mut random = Random::default();
    let mut rounds = vec![Vec::with_capacity(cycles); subjects.len()];
    for cycle in 0..WARM_UP + cycles {
        random.shuffle(&mut order);
        for &i in &order {
            let ns = one(subjects[i]);
            if cycle >= WARM_UP {
                rounds[i].push(ns);
            }
        }
    }
    rounds
}

/// One round. A short one goes before it untimed, since everyone has slept and found the caches taken by others.
pub fn one(subject: &dyn Subject) -> f64 {
    subject.round(SPANS / 10);
    let took = subject.round(SPANS);
    subject.settle();
    took.as_nanos() as f64 / f64::from(SPANS)
}

/// The rounds less the loop of the same cycle.
#[must_use]
pub fn above(rounds: &[f64], floor: &[f64]) -> Vec<f64> {
    rounds.iter().zip(floor).map(|(round, floor)| round - floor).collect()
}

/// Of each cycle, how many times as long the one took as the other.
#[must_use]
pub fn ratio(rounds: &[f64], to: &[f64]) -> Vec<f64> {
    rounds.iter().zip(to).map(|(round, to)| round / to).collect()
}

/// The same order of rounds in every run.
#[derive(Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    /// The next number (xorshift).
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
