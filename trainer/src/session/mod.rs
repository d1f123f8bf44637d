//! The two long commands: a training run, and the evaluation of its drafter.

mod evaluate;
mod record;
mod simulate;
mod train;

pub use evaluate::{Control, EvaluateOptions, RunEvaluation, evaluate_run};
pub use train::{TrainOptions, Trained, train};
