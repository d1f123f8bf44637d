//! What a training tells whoever watches it; showing it is the watcher's business.

use serde::Serialize;

/// Someone who watches a training. Called from the workers' threads: return soon.
pub trait Observer: Send + Sync {
    /// A drafter has made a step.
    fn step(&self, step: &Step);
    /// A lane's mean times since its last report.
    fn lane(&self, report: &LaneReport);
    /// Something that a user should know, and that does not end the training.
    fn note(&self, _text: &str) {}
}

/// Where a training stands after a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Steps made.
    pub step: usize,
    /// Steps to make.
    pub steps: usize,
    /// Loss of the last steps that were read back.
    pub loss: Option<f64>,
    /// Share of supervised slots predicted right, of the same steps.
    pub accuracy: Option<f64>,
    /// Context tokens a second, of the same steps.
    pub tokens_per_s: Option<f64>,
    /// Which side waits, e.g. `drafter waits 31 % of its time for hidden states`.
    pub waiting: String,
}

/// Mean times of a lane's iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneReport {
    /// The lane.
    pub lane: String,
    /// Its iteration.
    pub iteration: u64,
    /// Iterations that the means are over.
    pub iterations: u64,
    /// Stages in order, `total` and `residue` among them.
    pub stages: Vec<StageMean>,
}

/// A stage's mean time an iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageMean {
    /// The stage.
    pub stage: String,
    /// Milliseconds an iteration.
    pub ms: f64,
}

impl std::fmt::Display for LaneReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} iteration {}:", self.lane, self.iteration)?;
        let prefix = format!("{}.", self.lane.split(':').next().unwrap_or_default());
        for mean in &self.stages {
            // `loader` has stages `load.*`; the others are named like their lane.
            let short = mean.stage.strip_prefix(&prefix).or_else(|| mean.stage.strip_prefix("load."));
            write!(f, " {} {:.1}", short.unwrap_or(&mean.stage), mean.ms)?;
        }
        write!(f, " ms")
    }
}
