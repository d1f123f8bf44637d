//! What one call costs on this machine, measured at the start within a millisecond.

use std::sync::Arc;
use std::time::Instant;

use dflash_timeline::record::Kind;

use super::super::hub::Hub;
use super::super::iteration::IterationGuard;
use super::super::lane::Lane;
use super::super::site::Site;
use super::super::span::SpanGuard;
use crate::Level;

const ROUNDS: usize = 15;

/// Nanoseconds of a call's both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCosts {
    pub span_ns: f64,
    pub iteration_ns: f64,
}

/// Measures on a lane that nobody reads: the calling thread's own, the program's threads are left alone.
pub(crate) fn calibrate(hub: &Arc<Hub>) -> CallCosts {
    static SITE: Site = Site::new("profiler.calibration");
    let (lane, mut end) = Lane::new(hub, "profiler", "cpu", 1024, Arc::default());
    let _lane = lane.enter();
    let mut median = |count: u32, call: &dyn Fn()| {
        let mut rounds = [0.0; ROUNDS];
        for round in &mut rounds {
            let begin = Instant::now();
            (0..count).for_each(|_| call());
            *round = begin.elapsed().as_nanos() as f64 / f64::from(count);
            while end.events.pop().is_ok() {}
        }
        rounds.sort_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    };
    let span_ns = median(500, &|| drop(SpanGuard::begin(&SITE, 0, Level::Layers as u8)));
    let iteration_ns = median(10, &|| drop(IterationGuard::begin(Kind::Warmup, true)));
    CallCosts { span_ns, iteration_ns }
}
