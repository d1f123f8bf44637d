//! What can go wrong between the processes of a training.

use serde::{Deserialize, Serialize};

/// Why there are no several processes, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum RanksError {
    /// A variable of the environment.
    #[error("{name} {problem}; `torchrun --no-python dflash train …` sets it, or do so yourself (docs/pipeline.md)")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The processes did not find each other.
    #[error("rank {rank} of {size}: {problem}")]
    Join {
        /// Which one says so.
        rank: usize,
        /// How many there are.
        size: usize,
        /// What is in the way, and the way out.
        problem: String,
    },
    /// They would not train the same.
    #[error(
        "the ranks were not started alike: {differences}; start all of them with the same program and configuration"
    )]
    Differ {
        /// Every name with another value, with both.
        differences: String,
    },
    /// One has failed or is gone.
    #[error("{0}; what was trained up to the last checkpoint is kept: go on with --resume")]
    Gone(#[from] Gone),
}

impl RanksError {
    /// Whether it failed on the way, rather than because of its input.
    #[must_use]
    pub fn while_running(&self) -> bool {
        matches!(self, Self::Join { .. } | Self::Gone(_))
    }
}

/// The rank that ends a training for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rank {rank}{} {cause}", in_brackets(who))]
pub struct Gone {
    /// Which one.
    pub rank: usize,
    /// Its process and host, if they are known.
    pub who: String,
    /// `failed: …`, or how it went.
    pub cause: String,
}

fn in_brackets(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!(" ({who})") }
}
