//! The sensors of this machine's GPUs, by NVIDIA's management library. It is loaded at run time; without it there is
//! nothing to read, and a line says why.

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::{Bits, NvmlError};
use nvml_wrapper::{Device, Nvml};

/// A sensor's value under its counter's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// `gpu.nvml:0.power`, ….
    pub counter: String,
    /// `W`, ….
    pub unit: &'static str,
    /// The value in that unit.
    pub value: f64,
    /// Said once, when the counter is new.
    pub note: Option<String>,
}

/// GPUs whose sensors can be read.
pub trait Gpus {
    /// Reads them all. What a GPU does not give is left out.
    ///
    /// # Errors
    /// When none can be read; a sentence.
    fn read(&mut self) -> Result<Vec<Reading>, String>;
}

/// NVML, or why there is none.
pub struct Library(Result<Nvml, String>);

impl Library {
    /// Loads it.
    #[must_use]
    pub fn load() -> Self {
        Self(Nvml::init().map_err(|error| match error {
            NvmlError::LibloadingError(_) => "no GPU is shown: NVIDIA's management library is not there".to_owned(),
            NvmlError::DriverNotLoaded => "no GPU is shown: NVIDIA's driver is not loaded".to_owned(),
            other => format!("no GPU is shown: NVML does not start: {other}"),
        }))
    }
}

impl Gpus for Library {
    fn read(&mut self) -> Result<Vec<Reading>, String> {
        let nvml = self.0.as_ref().map_err(Clone::clone)?;
        let count =
            nvml.device_count().map_err(|error| format!("NVML does not say how many GPUs there are: {error}"))?;
        let mut readings = Vec::new();
        for index in 0..count {
            if let Ok(device) = nvml.device_by_index(index) {
                read_device(&device, index, &mut readings);
            }
        }
        Ok(readings)
    }
}

fn read_device(device: &Device<'_>, index: u32, readings: &mut Vec<Reading>) {
    let name = format!("nvml:{index}");
    let divided = device.mig_mode().is_ok_and(|mode| mode.current == 1);
    let model = device.name().unwrap_or_default();
    let note = if divided { format!("{name} ({model}) is divided (MIG)") } else { format!("{name}: {model}") };
    let mut add = |sensor: &str, unit: &'static str, value: f64| {
        let note = (sensor == "memory.used").then(|| note.clone());
        readings.push(Reading { counter: format!("gpu.{name}.{sensor}"), unit, value, note });
    };
    if let Ok(memory) = device.memory_info() {
        add("memory.used", "bytes", memory.used as f64);
        add("memory.total", "bytes", memory.total as f64);
    }
    if let Ok(rates) = device.utilization_rates() {
        add("utilization", "%", f64::from(rates.gpu));
    }
    if let Ok(milliwatts) = device.power_usage() {
        add("power", "W", f64::from(milliwatts) / 1e3);
    }
    if let Ok(milliwatts) = device.enforced_power_limit() {
        add("power.limit", "W", f64::from(milliwatts) / 1e3);
    }
    if let Ok(clock) = device.clock_info(Clock::SM) {
        add("clock.sm", "MHz", f64::from(clock));
    }
    if let Ok(degrees) = device.temperature(TemperatureSensor::Gpu) {
        add("temperature", "°C", f64::from(degrees));
    }
    if let Some(bits) = throttle(device) {
        add("throttle", "bits", bits as f64);
    }
}

/// Bits that are newer than nvml-wrapper are numbers all the same.
fn throttle(device: &Device<'_>) -> Option<u64> {
    match device.current_throttle_reasons_strict() {
        Ok(reasons) => Some(reasons.bits()),
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Some(bits),
        Err(_) => None,
    }
}
