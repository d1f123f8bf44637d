//! Noise on the context features, so that a drafter does not learn its target's hidden states by heart.

use crate::config::{NoiseKind, NoiseSchedule, Train};
use std::sync::{Mutex, PoisonError};
use tch::{Kind, Tensor};

/// libtorch's generators are shared by all threads: seeding and drawing must not be torn apart.
static GENERATOR: Mutex<()> = Mutex::new(());

/// How much noise, when, and of which kind.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    schedule: NoiseSchedule,
    kind: NoiseKind,
    start: f64,
    end: f64,
    steps: usize,
    seed: u64,
}

impl Noise {
    /// The noise that the settings ask for.
    #[must_use]
    pub fn new(settings: &Train, seed: u64) -> Self {
        Self {
            schedule: settings.noise,
            kind: settings.noise_kind,
            start: settings.noise_start,
            end: settings.noise_end,
            steps: settings.steps,
            seed,
        }
    }

    /// Amplitude (uniform) or standard deviation (gaussian) at a step, counted from 0.
    #[must_use]
    pub fn size(&self, step: usize) -> f64 {
        match self.schedule {
            NoiseSchedule::None => 0.0,
            NoiseSchedule::Constant => self.start,
            NoiseSchedule::Cosine => {
                let progress = (step as f64 / self.steps.saturating_sub(1).max(1) as f64).min(1.0);
                self.end + (self.start - self.end) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
            }
        }
    }

    /// Hidden states with the noise of step `step`; `batch` tells apart the batches of a step and of all steps. The same
    /// numbers for the same seed, batch and kind of device.
    pub fn add(&self, taps: &Tensor, step: usize, batch: u64) -> Tensor {
        let size = self.size(step);
        if size == 0.0 {
            return taps.shallow_clone();
        }
        let noise = {
            let _drawing = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
            tch::manual_seed(mixed(self.seed, batch) as i64);
            let shape = taps.size();
            let options = (Kind::Float, taps.device());
            match self.kind {
                NoiseKind::Uniform => Tensor::rand(&shape[..], options) * (2.0 * size) - size,
                NoiseKind::Gaussian => Tensor::randn(&shape[..], options) * size,
            }
        };
        taps + noise.to_kind(taps.kind())
    }
}

/// One number of two, as far from its neighbours' as any other (splitmix64's finish).
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Device;

    fn noise(schedule: NoiseSchedule, kind: NoiseKind) -> Noise {
        let settings = Train {
            noise: schedule,
            noise_kind: kind,
            noise_start: 0.2,
            noise_end: 0.05,
            steps: 101,
            ..Train::default()
        };
        Noise::new(&settings, 3)
    }

    #[test]
    fn the_cosine_goes_from_start_to_end() {
        let n = noise(NoiseSchedule::Cosine, NoiseKind::Uniform);
        assert_eq!(n.size(0), 0.2);
        assert!((n.size(50) - 0.125).abs() < 1e-12);
        assert!((n.size(100) - 0.05).abs() < 1e-12);
        assert_eq!(noise(NoiseSchedule::Constant, NoiseKind::Uniform).size(70), 0.2);
        assert_eq!(noise(NoiseSchedule::None, NoiseKind::Uniform).size(70), 0.0);
    }

    #[test]
    fn noise_is_the_same_for_the_same_batch_and_another_for_the_next() {
        let n = noise(NoiseSchedule::Constant, NoiseKind::Gaussian);
        let zero = Tensor::zeros([40, 50], (Kind::Float, Device::Cpu));
        let (a, b, c) = (n.add(&zero, 5, 5), n.add(&zero, 5, 5), n.add(&zero, 5, 6));
        assert!(a.equal(&b) && !a.equal(&c));
        let std = a.std(true).double_value(&[]);
        assert!((std - 0.2).abs() < 0.02, "{std}");
        let even = noise(NoiseSchedule::Constant, NoiseKind::Uniform).add(&zero, 0, 0);
        let (most, mean) = (even.abs().max().double_value(&[]), even.mean(Kind::Float).double_value(&[]));
        assert!(most <= 0.2 && most > 0.19 && mean.abs() < 0.01, "{most} {mean}");
    }
}
