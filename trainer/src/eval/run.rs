//! What is known of a drafter: its own figures, and those of the controls.

use super::Evaluation;
use crate::target::Target;
use serde::Serialize;
use tch::{Device, Kind};

/// The figures of a run's drafter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvaluation {
    /// The trained drafter.
    pub trained: Evaluation,
    /// The drafter before training; `None` without controls.
    pub untrained: Option<Evaluation>,
    /// The trained drafter without context features; `None` without controls.
    pub zeroed: Option<Evaluation>,
    /// The target without a drafter, for its speed; `None` without controls.
    pub plain: Option<Evaluation>,
    /// The arithmetic can tell an error of the decoding loop from rounding: not so bfloat16 on a GPU, where a pass over
    /// a block and one over the whole text differ by several steps.
    pub strict: bool,
    /// At which the drafters and the target drew; 0: greedy.
    pub temperature: f64,
}

impl RunEvaluation {
    /// Of a drafter alone, without controls.
    #[must_use]
    pub fn of(trained: Evaluation, target: &Target, temperature: f64) -> Self {
        Self { trained, untrained: None, zeroed: None, plain: None, strict: strict(target), temperature }
    }

    /// Whether its acceptance length may be quoted: not where a loop gives answers that the target would not give.
    #[must_use]
    pub fn counts(&self) -> bool {
        !(self.strict && self.wrong() > 0)
    }

    /// What a checkpoint's eval.json holds.
    #[must_use]
    pub fn figures(&self) -> serde_json::Value {
        serde_json::json!({
            "tau": self.trained.tau,
            "prompts": self.trained.prompts,
            "temperature": self.temperature,
            "evaluation": self,
        })
    }

    /// Answers that the target would not have given.
    #[must_use]
    pub fn wrong(&self) -> usize {
        let controls = self.untrained.iter().chain(&self.zeroed).chain(&self.plain);
        controls.map(|e| e.wrong).sum::<usize>() + self.trained.wrong
    }

    /// Tokens a second with and without drafting; empty without controls.
    #[must_use]
    pub fn speed_line(&self) -> String {
        let Some(plain) = &self.plain else { return String::new() };
        let (with, without) = (self.trained.tokens_per_second(), plain.tokens_per_second());
        let times = if without > 0.0 { with / without } else { 0.0 };
        format!("speed: {with:.0} tokens/s with drafting, {without:.0} without ({times:.2} times)\n")
    }

    /// The line that a demo ends with.
    #[must_use]
    pub fn tau_line(&self) -> String {
        match (&self.untrained, &self.zeroed) {
            (Some(untrained), Some(zeroed)) => format!(
                "tau: untrained {:.2}, trained {:.2}, trained but with context features zeroed at evaluation {:.2}",
                untrained.tau, self.trained.tau, zeroed.tau
            ),
            _ => format!("tau: trained {:.2}", self.trained.tau),
        }
    }
}

/// Whether a target's arithmetic can tell an error of the decoding loop from rounding.
pub(crate) fn strict(target: &Target) -> bool {
    target.kind() == Kind::Float || target.device() == Device::Cpu
}
