//! Learning rate over the steps.

use crate::config::Schedule;

/// Factor on the base learning rate at `step` (from 0) of `steps`: rises over the warm-up's share of the steps, reaching 1
/// at its last step, then follows the schedule; a cosine ends at zero after the last step.
#[must_use]
pub fn factor(schedule: Schedule, step: usize, steps: usize, warmup: f64) -> f64 {
    let rising = (steps as f64 * warmup).round();
    let step = step as f64;
    if step < rising {
        return (step + 1.0) / rising;
    }
    match schedule {
        Schedule::Constant => 1.0,
        Schedule::Cosine => {
            let progress = (step - rising) / (steps as f64 - rising).max(1.0);
            0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_then_falls_to_nearly_zero() {
        let f = |step| factor(Schedule::Cosine, step, 100, 0.04);
        assert_eq!([f(0), f(1), f(2), f(3), f(4)], [0.25, 0.5, 0.75, 1.0, 1.0]);
        assert!((f(52) - 0.5).abs() < 1e-12);
        assert!(f(99) > 0.0 && f(99) < 0.001);
        assert_eq!(factor(Schedule::Constant, 50, 100, 0.0), 1.0);
    }
}
