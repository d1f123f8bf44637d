//! What the sensors of simulated GPUs would show, each second, under the names that NVML's readings have.

use super::gpu::{Gpu, Gpus};
use dflash_profiler::{Counter, Profiler};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);
/// A GPU of the H200's class: watts at rest and at work, its limit, MHz, bytes.
const IDLE_W: f64 = 120.0;
const BUSY_W: f64 = 650.0;
const LIMIT_W: f64 = 700.0;
const CLOCK_MHZ: f64 = 1980.0;
const MEMORY: f64 = 150e9;

/// One GPU's counters.
struct Sensors<'a> {
    gpu: &'a Gpu,
    busy_ns: u64,
    energy: f64,
    utilization: Counter,
    power: Counter,
    energy_total: Counter,
    temperature: Counter,
    /// What never changes.
    constant: [(Counter, f64); 4],
}

impl<'a> Sensors<'a> {
    fn new(gpu: &'a Gpu, profiler: &Profiler) -> Self {
        let counter = |sensor: &str, unit: &str| profiler.counter(&format!("gpu.{}.{sensor}", gpu.name), unit);
        Self {
            gpu,
            busy_ns: gpu.busy_ns(),
            energy: 0.0,
            utilization: counter("utilization", "%"),
            power: counter("power", "W"),
            energy_total: counter("energy", "J"),
            temperature: counter("temperature", "°C"),
            constant: [
                (counter("power.limit", "W"), LIMIT_W),
                (counter("clock.sm", "MHz"), CLOCK_MHZ),
                (counter("memory.total", "bytes"), MEMORY),
                (counter("throttle", "bits"), 0.0),
            ],
        }
    }

    /// Readings of the last `seconds`.
    fn read(&mut self, seconds: f64) {
        let busy_ns = self.gpu.busy_ns();
        let busy = (busy_ns.saturating_sub(self.busy_ns) as f64 / 1e9 / seconds).min(1.0);
        self.busy_ns = busy_ns;
        let power = IDLE_W + (BUSY_W - IDLE_W) * busy;
        self.energy += power * seconds;
        self.utilization.record((busy * 100.0).round());
        self.power.record(power);
        self.energy_total.record(self.energy);
        self.temperature.record(30.0 + 45.0 * power / LIMIT_W);
        self.constant.iter().for_each(|(counter, value)| counter.record(*value));
    }
}

/// Reads all sensors each second, and once more at the end.
pub(super) fn watch(gpus: &Gpus, profiler: &Profiler, ended: &AtomicBool) {
    let mut sensors: Vec<_> = gpus.iter().map(|gpu| Sensors::new(gpu, profiler)).collect();
    let mut last = Instant::now();
    loop {
        let at_end = ended.load(Ordering::Relaxed);
        let seconds = last.elapsed();
        if at_end || seconds >= EVERY {
            last = Instant::now();
            sensors.iter_mut().for_each(|own| own.read(seconds.as_secs_f64().max(1e-9)));
        }
        if at_end {
            return;
        }
        std::thread::park_timeout(EVERY.saturating_sub(last.elapsed()));
    }
}
