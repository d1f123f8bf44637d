//! Where the run stands, for whoever asks.

use std::sync::atomic::Ordering;

use dflash_timeline::control::{Cost, Status};

use super::super::hub::lock;
use super::super::level;
use super::{Control, cost};
use crate::Level;

impl Control {
    pub(super) fn status(&self) -> Status {
        let so_far = *lock(&self.hub.so_far);
        let visits_cpu_ns = self.visits_cpu_ns.load(Ordering::Relaxed);
        Status {
            pid: std::process::id(),
            run: self.run.path().display().to_string(),
            rank: self.rank,
            attempt: self.attempt,
            age_ns: u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            level: level_name(level::level()).to_owned(),
            lanes: self.lanes.status(&self.hub.clock),
            totals: so_far.totals,
            trouble: self.hub.trouble.text_of_ranks(),
            cpu_hz: self.profiler().ok().and_then(|profiler| profiler.0.as_ref().and_then(|inner| inner.cpu.hz())),
            kernels: self.kernels.running(),
            takes_requests: self.requests.are_taken(),
            cost: Cost {
                cpu_ns: cost::threads_cpu_ns() + visits_cpu_ns,
                process_cpu_ns: dflash_sys::process_cpu_ns(),
                bytes: so_far.bytes,
            },
        }
    }
}

/// The level's name, as requests and answers have it.
pub(super) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Off => "off",
        Level::Stages => "stages",
        Level::Layers => "layers",
    }
}
