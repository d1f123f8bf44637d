//! Learning rate over the steps.

use crate::config::{DecayShape, Schedule, Train};

/// A learning rate's way through a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The way after the warm-up.
    pub schedule: Schedule,
    /// Steps in all.
    pub steps: usize,
    /// Share of the steps over which it rises.
    pub warmup: f64,
    /// With `wsd`: share of the steps over which it falls.
    pub decay: f64,
    /// With `wsd`: shape of the fall.
    pub shape: DecayShape,
    /// Where every schedule but `constant` ends.
    pub least: f64,
}

impl From<&Train> for Rates {
    fn from(t: &Train) -> Self {
        let (schedule, steps, warmup) = (t.schedule, t.steps, t.warmup);
        Self { schedule, steps, warmup, decay: t.decay, shape: t.decay_shape, least: t.min_rate }
    }
}

impl Rates {
    /// Factor on the base learning rate at `step` (from 0): rises over the warm-up, reaching 1 at its last step, then
    /// follows the schedule, whose end lies one step after the last.
    #[must_use]
    pub fn factor(&self, step: usize) -> f64 {
        let steps = self.steps as f64;
        let rising = (steps * self.warmup).round();
        let step = step as f64;
        if step < rising {
            return (step + 1.0) / rising;
        }
        let progress = |from: f64| ((step - from) / (steps - from).max(1.0)).clamp(0.0, 1.0);
        let fallen = match self.schedule {
            Schedule::Constant => return 1.0,
            Schedule::Cosine => half_cosine(progress(rising)),
            Schedule::Linear => 1.0 - progress(rising),
            Schedule::Wsd => self.shape.of(progress(steps - (steps * self.decay).round())),
        };
        self.least + (1.0 - self.least) * fallen
    }
}

impl DecayShape {
    fn of(self, progress: f64) -> f64 {
        match self {
            Self::Cosine => half_cosine(progress),
            Self::Linear => 1.0 - progress,
            Self::Sqrt => 1.0 - progress.sqrt(),
        }
    }
}

fn half_cosine(progress: f64) -> f64 {
    0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(schedule: Schedule) -> Rates {
        Rates { schedule, steps: 100, warmup: 0.04, decay: 0.2, shape: DecayShape::Linear, least: 0.0 }
    }

    #[test]
    fn rises_then_falls_to_nearly_zero() {
        let f = |step| rates(Schedule::Cosine).factor(step);
        assert_eq!([f(0), f(1), f(2), f(3), f(4)], [0.25, 0.5, 0.75, 1.0, 1.0]);
        assert!((f(52) - 0.5).abs() < 1e-12);
        assert!(f(99) > 0.0 && f(99) < 0.001);
        assert_eq!(Rates { warmup: 0.0, ..rates(Schedule::Constant) }.factor(50), 1.0);
    }

    #[test]
    fn wsd_stays_and_then_falls() {
        let f = |step| Rates { least: 0.5, ..rates(Schedule::Wsd) }.factor(step);
        assert_eq!([f(4), f(79), f(80), f(90)], [1.0, 1.0, 1.0, 0.75]);
    }
}
