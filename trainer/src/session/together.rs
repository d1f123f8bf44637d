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
        let patience = Patience::new(Duration::from_secs(join), Duration::from_secs(silence));
        let ranks = Ranks::join(launch, patience, stop)?;
        ranks.agree(&facts(config, options.commit.as_deref()), stop)?;
        let counts: Vec<usize> = ranks.gather_unless(&drafters, stop)?;
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

    /// Refuses processes that differ in something; `stop` ends the waiting for them.
    pub(super) fn agree(&self, own: impl FnOnce() -> Facts, stop: &dyn Fn() -> bool) -> Result<(), TrainError> {
        Ok(self.others.as_ref().map_or(Ok(()), |ranks| ranks.agree(&own(), stop))?)
    }

    /// Whether rank 0 goes on in a run: the others need not have been told so.
    pub(super) fn resumes(&self, own: bool, stop: &dyn Fn() -> bool) -> Result<bool, TrainError> {
        let Some(ranks) = &self.others else { return Ok(own) };
        Ok(ranks.gather_unless(&own, stop)?.first().is_some_and(|first| *first))
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

    /// Waits for all once all is done and written: at rank 0 it is no failure if one of them is killed now.
    pub(super) fn part(&self, observer: &dyn Observer) -> Result<(), TrainError> {
        match self.sum(0.0) {
            Err(error) if self.is_first() => observer.note(&format!("warning: after the end of the training, {error}")),
            waited => drop(waited?),
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Launch;
    use crate::ranks::tests::ports::free_port;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Observer for Notes {
        fn step(&self, _: &Step) {}
        fn lane(&self, _: &LaneReport) {}
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    /// Two ranks of this process, each with what it is asked to do.
    fn both<T: Send>(work: impl Fn(Together) -> T + Sync) -> [T; 2] {
        let port = free_port();
        let join = |rank| {
            let (host, prefix) = ("127.0.0.1".to_owned(), "t/".to_owned());
            let launch = Launch { rank, size: 2, local_rank: rank, host, port, agent_store: false, prefix };
            let patience = Patience::new(Duration::from_secs(60), Duration::from_secs(30));
            let ranks = Ranks::join(&launch, patience, &|| false).unwrap();
            let among = Among { first: rank, all: 2 };
            let together = Together { others: Some(Arc::new(ranks)), among, local_rank: rank };
            // All have come.
            together.sum(0.0).unwrap();
            together
        };
        std::thread::scope(|scope| {
            let (join, work) = (&join, &work);
            let other = scope.spawn(move || work(join(1)));
            [work(join(0)), other.join().unwrap()]
        })
    }

    #[test]
    fn who_is_killed_after_the_end_is_a_note_to_rank_0() {
        let notes = Notes::default();
        let [own, _] = both(|together| if together.is_first() { together.part(&notes) } else { Ok(()) });
        own.unwrap();
        let notes = notes.0.into_inner().unwrap();
        assert!(notes.len() == 1 && notes[0].contains("rank 1 (") && notes[0].contains("has ended"), "{notes:?}");
        // To the others rank 0's end is a failure: nobody has told them that all is written.
        let [_, other] = both(|together| {
            if together.is_first() {
                together.others.as_ref().unwrap().fail("its disk is full");
                return Ok(());
            }
            together.part(&Notes::default())
        });
        assert!(other.unwrap_err().to_string().contains("rank 0 ("));
    }

    #[test]
    fn whether_a_run_goes_on_is_what_rank_0_says() {
        for by_first in [false, true] {
            let said = both(|together| together.resumes(together.is_first() == by_first, &|| false).unwrap());
            assert_eq!(said, [by_first; 2]);
        }
    }
}
