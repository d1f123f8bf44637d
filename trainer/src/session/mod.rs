//! The two long commands: a training run, and the evaluation of its drafter.

mod begin;
mod evaluate;
mod features;
mod finish;
mod load;
mod random;
mod record;
mod resume;
mod simulate;
mod started;
mod texts;
mod together;
mod train;
mod trained;

pub use crate::eval::RunEvaluation;
pub use evaluate::{Control, EvaluateOptions, evaluate_drafter, evaluate_run, record_checkpoint};
pub use resume::{run_config, unfinished};
pub use train::{TrainOptions, train};
pub use trained::Trained;
