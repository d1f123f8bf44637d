//! The recorder of a training, as its configuration wants it.

use crate::config::{Config, Level as ConfigLevel, bytes, percent};
use crate::error::TrainError;
use crate::instrument::KinetoCapture;
use dflash_profiler::timeline::RunDir;
use dflash_profiler::{Level, Options, Profiler};
use std::sync::Arc;

/// Starts recording into a run. `gpus`: whether a worker is on one.
pub(super) fn start_profiler(
    run: &RunDir,
    config: &Config,
    (attempt, rank): (u32, usize),
    gpus: bool,
) -> Result<Profiler, TrainError> {
    let profile = &config.profile;
    let mut options = Options::new(run.clone());
    options.attempt = attempt;
    options.rank = u32::try_from(rank).unwrap_or(u32::MAX);
    options.level = match profile.level {
        ConfigLevel::Off => Level::Off,
        ConfigLevel::Stages => Level::Stages,
        ConfigLevel::Layers => Level::Layers,
    };
    // Checked with the configuration.
    options.max_overhead = percent(&profile.max_overhead).unwrap_or(f64::INFINITY);
    options.stream.keep_bytes = bytes(&profile.keep).flatten();
    options.bare.pairs = profile.bare_pairs;
    options.bare.every = profile.bare_every;
    options.control = profile.control;
    if !(gpus && profile.nvml) {
        options.nvml.every = None;
    }
    options.nvml.pcie = profile.pcie;
    let profiler = Profiler::start(options)?;
    profiler.kernel_capture(Arc::new(KinetoCapture::new()));
    Ok(profiler)
}
