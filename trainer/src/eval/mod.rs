//! Held-out evaluation: what a drafter is worth when it is served.

mod choose;
mod decode;
mod equality;
mod report;
mod run;

pub use decode::{DecodeOptions, Decoded, decode};
pub use equality::{Agreement, Judgement, judge};
pub use report::{Evaluation, evaluate, evaluate_while};
pub use run::RunEvaluation;
pub(crate) use run::strict;
