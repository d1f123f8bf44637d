//! What came of a training, and what run.json says of it.

use super::evaluate::note;
use super::together::Together;
use crate::checkpoint::RunLock;
use crate::error::TrainError;
use crate::eval::RunEvaluation;
use crate::pipeline::Observer;
use dflash_profiler::timeline::{RunDir, State};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// A finished training.
#[derive(Debug)]
pub struct Trained {
    /// Its run directory.
    pub run: RunDir,
    /// Which of several processes this was, from 0.
    pub rank: usize,
    /// Steps made; fewer than configured if it was stopped.
    pub steps: usize,
    /// Context tokens a second of all processes, without padding; 0 where no step was left to make, and then not in run.json.
    pub tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub loop_seconds: Vec<(String, f64)>,
    /// The exported drafter; none comes of a simulation, or of random weights.
    pub drafter: Option<PathBuf>,
    /// What an evaluation after the last step has found, if there was one.
    pub evaluation: Option<RunEvaluation>,
    /// It was stopped before its end.
    pub stopped: bool,
    /// What the recorder could not do, if anything.
    pub trouble: Option<String>,
}

/// What the lanes have done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) steps: usize,
    /// Of all processes.
    pub(super) tokens_per_s: f64,
    pub(super) loop_seconds: Vec<(String, f64)>,
    pub(super) evaluation: Option<RunEvaluation>,
}

impl Trained {
    /// A training in `run` that was to make `asked` steps; its drafter and its recorder's trouble are the caller's to say.
    pub(super) fn new(run: &RunDir, together: &Together, asked: usize, done: Done) -> Self {
        let Done { steps, tokens_per_s, loop_seconds, evaluation } = done;
        Self {
            run: run.clone(),
            rank: together.rank(),
            steps,
            tokens_per_s,
            loop_seconds,
            drafter: None,
            evaluation,
            stopped: steps < asked,
            trouble: None,
        }
    }
}

/// The end of a training: rank 0 says in run.json what came of it, and the others wait for that.
pub(super) fn ended(
    run: &RunDir,
    together: &Together,
    observer: &dyn Observer,
    trained: Result<Trained, TrainError>,
    lock: Option<RunLock>,
) -> Result<Trained, TrainError> {
    let closed = if together.is_first() { close(run, &trained) } else { Ok(()) };
    // Not before: another attempt's run.json must not be written over.
    drop(lock);
    let mut trained = trained?;
    match (closed, &mut trained.trouble) {
        // The disk that stopped the recording takes no note of the end either; the training is no worse for it.
        (Err(error), Some(trouble)) => *trouble += &format!("; {error}"),
        (closed, _) => closed?,
    }
    together.part(observer)?;
    Ok(trained)
}

/// Writes the outcome into run.json.
fn close(run: &RunDir, trained: &Result<Trained, TrainError>) -> Result<(), TrainError> {
    let mut manifest = run.manifest()?;
    manifest.ended_unix_ns = ended_now();
    let (state, outcome) = match trained {
        Ok(t) if t.stopped => (State::Stopped, format!("stopped after {} steps", t.steps)),
        Ok(t) => (State::Finished, format!("{} steps", t.steps)),
        Err(error) => (State::Failed, error.to_string()),
    };
    manifest.state = state;
    manifest.outcome = Some(outcome);
    if let Ok(t) = trained {
        // Where no step was left to make, the drafter may be the one that an evaluation has been of.
        let same = t.loop_seconds.is_empty() && manifest.results.get("steps").is_none_or(|was| *was == t.steps);
        manifest.results.insert("steps".to_owned(), t.steps.into());
        // Where no step was left to make, no lane has begun.
        if !t.loop_seconds.is_empty() {
            manifest.results.insert("tokens_per_s".to_owned(), t.tokens_per_s.into());
            let loops: serde_json::Map<_, _> =
                t.loop_seconds.iter().map(|(lane, s)| (lane.clone(), (*s).into())).collect();
            manifest.results.insert("loop_seconds".to_owned(), loops.into());
        }
        if !same {
            ["tau", "evaluation"].iter().for_each(|name| drop(manifest.results.remove(*name)));
        }
        t.evaluation.iter().for_each(|evaluation| note(&mut manifest, evaluation));
    }
    Ok(run.write_manifest(&manifest)?)
}

/// Nanoseconds since 1970.
fn ended_now() -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).ok()
}
