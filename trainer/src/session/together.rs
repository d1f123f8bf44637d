//! What a training agrees on with the other processes of it; with one process there is nobody to ask.

use super::train::TrainOptions;
use crate::config::Config;
use crate::error::TrainError;
use crate::pipeline::{Among, LaneReport, Observer, Step};
use crate::ranks::{Facts, Gone, Patience, Ranks, RanksError, facts};
use dflash_profiler::Profiler;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The other processes, if there are any.
pub(super) struct Together {
    others: Option<Arc<Ranks>>,
    among: Among,
    /// `LOCAL_RANK`.
    pub(super) local_rank: usize,
}

impl Together {
    /// Finds the other processes, and makes sure that they were started alike.
    pub(super) fn begin(config: &Config, options: &TrainOptions, stop: &dyn Fn() -> bool) -> Result<Self, TrainError> {
        let drafters = config.pipeline.drafters().len();
        let Some(launch) = &options.launch else {
            return Ok(Self { others: None, among: Among { first: 0, all: drafters }, local_rank: 0 });
        };
        // Before there are other threads: see there.
        dflash_torch::load_cuda();
        let pipeline = &config.pipeline;
        let (join, silence) = (pipeline.join_seconds, pipeline.silence_seconds);
        let patience = Patience { join: Duration::from_secs(join), silence: Duration::from_secs(silence) };
        let ranks = Ranks::join(launch, patience, stop)?;
        ranks.agree(&facts(config, options.commit.as_deref()))?;
        let counts: Vec<usize> = ranks.gather(&drafters).map_err(RanksError::from)?;
        let among = Among { first: counts[..launch.rank].iter().sum(), all: counts.iter().sum() };
        Ok(Self { others: Some(Arc::new(ranks)), among, local_rank: launch.local_rank })
    }

    /// This process's number.
    pub(super) fn rank(&self) -> usize {
        self.others.as_ref().map_or(0, |ranks| ranks.rank())
    }

    /// Whether this process writes what is written once.
    pub(super) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Drafters of all processes.
    pub(super) fn drafters(&self) -> usize {
        self.among.all
    }

    /// What the lanes need of it.
    pub(super) fn ranks(&self) -> Option<(Arc<Ranks>, Among)> {
        self.others.as_ref().map(|ranks| (Arc::clone(ranks), self.among))
    }

    /// Refuses processes that differ in something.
    pub(super) fn agree(&self, own: impl FnOnce() -> Facts) -> Result<(), TrainError> {
        Ok(self.others.as_ref().map_or(Ok(()), |ranks| ranks.agree(&own()))?)
    }

    /// Rank 0 says something to all.
    pub(super) fn told<T: Serialize + DeserializeOwned>(&self, by_first: Option<T>) -> Result<Option<T>, TrainError> {
        let Some(ranks) = &self.others else { return Ok(by_first) };
        let all: Vec<Option<T>> = ranks.gather(&by_first).map_err(RanksError::from)?;
        Ok(all.into_iter().next().flatten())
    }

    /// Rank 0 does something, and the others do it once it has.
    pub(super) fn first_then_others<T>(&self, work: impl FnOnce() -> Result<T, TrainError>) -> Result<T, TrainError> {
        if self.is_first() {
            let done = work()?;
            self.sum(0.0)?;
            return Ok(done);
        }
        self.sum(0.0)?;
        work()
    }

    /// Waits for all, and adds up a number.
    pub(super) fn sum(&self, value: f64) -> Result<f64, TrainError> {
        let Some(ranks) = &self.others else { return Ok(value) };
        let all: Vec<f64> = ranks.gather(&value).map_err(RanksError::from)?;
        Ok(all.iter().sum())
    }

    /// The other rank that has ended the training, if one has.
    pub(super) fn ended(&self) -> Option<Gone> {
        let ranks = self.others.as_ref()?;
        ranks.ended().filter(|gone| gone.rank != ranks.rank())
    }

    /// Of an error that is only the echo of another rank's end: that.
    pub(super) fn cause(&self, error: TrainError) -> TrainError {
        if !error.while_running() {
            return error;
        }
        self.ended().map_or(error, |gone| RanksError::Gone(gone).into())
    }

    /// Tells the others of this process's end, unless it is theirs.
    pub(super) fn tell_failure(&self, error: &TrainError) {
        if let Some(ranks) = &self.others {
            ranks.fail(&error.to_string());
        }
    }

    /// Records how far this host's clock is from rank 0's.
    pub(super) fn record_clock(&self, profiler: &Profiler) {
        if let Some(ranks) = &self.others {
            let (offset, uncertainty) =
                (profiler.counter("clock.offset", "ns"), profiler.counter("clock.uncertainty", "ns"));
            ranks.watch_clock(move |measured| {
                offset.record(measured.offset_ns as f64);
                uncertainty.record(measured.uncertainty_ns as f64);
            });
        }
    }
}

/// Watches on another rank than 0: its lanes are in the timeline, its notes say whose they are.
pub(super) struct Quiet<'a> {
    pub(super) observer: &'a dyn Observer,
    pub(super) rank: usize,
}

impl Observer for Quiet<'_> {
    fn step(&self, step: &Step) {
        self.observer.step(step);
    }

    fn lane(&self, _: &LaneReport) {}

    fn note(&self, text: &str) {
        self.observer.note(&format!("rank {}: {text}", self.rank));
    }
}
