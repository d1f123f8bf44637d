//! Noise on the context features, so that a drafter does not learn its target's hidden states by heart.

use crate::config::{NoiseKind, NoiseSchedule, Train};
use std::sync::{Mutex, PoisonError};
use tch::{Device, Kind, Tensor};

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

    /// Hidden states [b, S, n·D] with the noise of step `step`; row i is row number `first_row + i` of the step. A row's
    /// noise depends on seed, step, its number and the kind of device: several drafters that share a step's rows add what
    /// one drafter would.
    pub fn add(&self, taps: &Tensor, step: usize, first_row: u64) -> Tensor {
        let size = self.size(step);
        if size == 0.0 {
            return taps.shallow_clone();
        }
        let shape = taps.size();
        let rows: Vec<Tensor> = (first_row..)
            .take(shape[0] as usize)
            .map(|row| self.drawn(&shape[1..], taps.device(), mixed(mixed(self.seed, step as u64), row)) * size)
            .collect();
        taps + Tensor::stack(&rows, 0).to_kind(taps.kind())
    }

    /// Numbers of size 1.
    fn drawn(&self, shape: &[i64], device: Device, seed: u64) -> Tensor {
        seeded(seed as i64, || match self.kind {
            NoiseKind::Uniform => Tensor::rand(shape, (Kind::Float, device)) * 2.0 - 1.0,
            NoiseKind::Gaussian => Tensor::randn(shape, (Kind::Float, device)),
        })
    }
}

/// Draws from libtorch's generators, with nobody between the seed and the draw.
pub(super) fn seeded<T>(seed: i64, draw: impl FnOnce() -> T) -> T {
    let _drawing = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    tch::manual_seed(seed);
    draw()
}

/// One number of two, as far from its neighbours' as any other (splitmix64's finish).
fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::IndexOp;

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
    fn a_rows_noise_is_its_own_whoever_adds_it() {
        let n = noise(NoiseSchedule::Constant, NoiseKind::Gaussian);
        let zero = |rows: i64| Tensor::zeros([rows, 40, 50], (Kind::Float, Device::Cpu));
        let (all, again, next) = (n.add(&zero(3), 5, 0), n.add(&zero(3), 5, 0), n.add(&zero(3), 6, 0));
        assert!(all.equal(&again) && !all.equal(&next));
        assert!(all.i(2).equal(&n.add(&zero(1), 5, 2).i(0)), "row 2, in a batch and alone");
        assert!(!all.i(1).equal(&all.i(2)));
        let std = all.std(true).double_value(&[]);
        assert!((std - 0.2).abs() < 0.02, "{std}");
        let even = noise(NoiseSchedule::Constant, NoiseKind::Uniform).add(&zero(1), 0, 0);
        let (most, mean) = (even.abs().max().double_value(&[]), even.mean(Kind::Float).double_value(&[]));
        assert!(most <= 0.2 && most > 0.19 && mean.abs() < 0.01, "{most} {mean}");
    }
}
