//! How long a lane's stages last, and what else happens in them.

use super::gpu::{Gpu, Queue};
use crate::config::{Lasting, Planted, Sim, planted};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest sleep without a look at whether the simulation has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One lane's times. The same seed and lane give the same times.
#[derive(Debug)]
pub(super) struct Clockwork {
    stages: BTreeMap<String, Lasting>,
    ahead: Lasting,
    rng: StdRng,
    planted: Option<Planted>,
    begun: u64,
    ended: Arc<AtomicBool>,
}

impl Clockwork {
    pub(super) fn new(settings: &Sim, seed: u64, lane: String, ended: Arc<AtomicBool>) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        // Names of lanes are short.
        key[8..].iter_mut().zip(lane.bytes()).for_each(|(part, byte)| *part = byte);
        // Checked with the configuration.
        let planted = planted(&settings.fail).flatten().filter(|planted| planted.lane == lane);
        let (stages, ahead) = (settings.stages.clone(), settings.run_ahead);
        Self { stages, ahead, rng: StdRng::from_seed(key), planted, begun: 0, ended }
    }

    /// Begins an iteration: here what is planted happens.
    pub(super) fn iteration(&mut self) -> Result<(), String> {
        let number = self.begun;
        self.begun += 1;
        match &self.planted {
            Some(planted) if planted.iteration == number => {
                let text = format!("planted by `fail` in [sim], iteration {number}");
                assert!(!planted.panics, "{text}");
                Err(text)
            }
            _ => Ok(()),
        }
    }

    /// A stage on the host.
    pub(super) fn on_host(&mut self, stage: &str) -> Result<(), String> {
        if let Some(time) = self.time(stage) {
            let clock = super::gpu::clock();
            self.sleep_until(clock.now_ns() + nanoseconds(time));
        }
        Ok(())
    }

    /// A stage on a device: queued behind what its stream has. The host waits until it is at most so far ahead of it.
    /// Returns when the device will have done it, true nanoseconds.
    pub(super) fn on(&mut self, gpu: &Gpu, queue: Queue, stage: &str) -> i64 {
        let time = self.time(stage).unwrap_or_default();
        let done = gpu.work(queue, time);
        let ahead = self.ahead.draw(|| self.rng.random());
        self.sleep_until(done.saturating_sub(nanoseconds(ahead)));
        done
    }

    fn time(&mut self, stage: &str) -> Option<Duration> {
        let rng = &mut self.rng;
        self.stages.get(stage).map(|lasting| lasting.draw(|| rng.random()))
    }

    /// Sleeps until a moment, in true nanoseconds, or the simulation's end.
    pub(super) fn sleep_until(&self, moment: i64) {
        let clock = super::gpu::clock();
        while !self.ended.load(Ordering::Relaxed) {
            let left = moment.saturating_sub(clock.now_ns());
            let Ok(left) = u64::try_from(left) else { return };
            if left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left).min(LOOK_EVERY));
        }
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
