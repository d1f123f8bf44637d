//! The thread `dflash-nvml`: what NVIDIA's management library says of the GPUs that this process uses.
//!
//! Counters are named `gpu.<device>.<reading>`, see [`gpus::Query::series`]. Each second (`tiers`): `utilization` and
//! `utilization.memory` (% of time), `memory.used` and `memory.total` (bytes), `power` and `power.limit` (W), `clock.sm`
//! and `clock.memory` (MHz), `temperature` (°C), `throttle` (the bits of `nvmlClocksEventReasons`, as a number). Each
//! 10 s: `energy` (J since the driver was loaded), `nvlink.tx` and `nvlink.rx` (bytes/s over all links since the reading
//! before). If asked for: `pcie.tx` and `pcie.rx` (bytes/s over 20 ms). What a device does not know has no reading, and a
//! mark says so.

mod asker;
mod details;
mod device;
mod gpus;
mod library;
mod select;
#[cfg(test)]
mod tests;
mod throttle;
mod tiers;
mod visible;
mod watch;

use std::time::Duration;

use asker::Clocks;
pub use details::gpu_details;
use dflash_timeline::record::Severity;
use library::Library;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
pub(crate) use visible::Visible;
use watch::Watch;

use super::sink::Sink;
use super::worker::Stop;
use crate::NvmlOptions;

/// The thread's work. `open` loads the library; a test has its own.
pub(crate) fn run(
    stop: &Stop,
    every: Duration,
    options: &NvmlOptions,
    environment: &Visible,
    open: impl FnOnce() -> Result<Nvml, NvmlError>,
    mut sink: impl Sink,
) {
    match open() {
        Ok(nvml) => {
            let library = Library::new(&nvml);
            let watch = Watch::start(library, Clocks::real(), (every, options), environment, &mut sink);
            go_on(stop, watch, &mut sink);
        }
        Err(error) => {
            let (severity, text) = absent(&error);
            sink.mark(severity, text);
        }
    }
}

fn go_on<G: gpus::Gpus>(stop: &Stop, watch: Option<Watch<G>>, sink: &mut dyn Sink) {
    let Some(mut watch) = watch else { return };
    while stop.rest(watch.rest()) {
        watch.turn(sink);
    }
    watch.last(sink);
}

/// Why there is no NVML. A machine without GPUs is no fault.
fn absent(error: &NvmlError) -> (Severity, String) {
    let info = |text: &str| (Severity::Info, format!("no GPU is sampled: {text}"));
    let warning = |text: &str| (Severity::Warning, format!("no GPU is sampled: {text}"));
    match error {
        NvmlError::LibloadingError(why) => info(&format!("NVIDIA's management library is not there ({why})")),
        NvmlError::DriverNotLoaded => info("NVIDIA's driver is not loaded"),
        NvmlError::LibRmVersionMismatch => warning(
            "the versions of NVIDIA's driver and its library differ, as after an update: restart the machine, or load \
             the driver anew",
        ),
        NvmlError::NoPermission => warning("NVML may not talk to the driver; give this user /dev/nvidiactl"),
        other => warning(&format!("NVML does not start: {other}")),
    }
}
