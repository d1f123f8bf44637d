//! What may be typed for the commands that compute. Free of the trainer's types, since both programs parse it: `dflash` for
//! help and mistakes, `dflash-train` to do it.

pub mod doctor;
pub mod eval;
pub mod export;
pub mod prepare;
pub mod train;

use clap::Subcommand;

/// A command that needs libtorch, and so the program `dflash-train`.
#[derive(Subcommand, Debug)]
pub enum Compute {
    /// Let the target answer the training prompts, and tokenise them into shards
    Prepare(prepare::Args),
    /// Train a drafter, recording where the time goes
    Train(train::Args),
    /// Measure a drafter's acceptance length (tau) by greedy draft-verify on held-out prompts
    Eval(eval::Args),
    /// Write a trained drafter as a directory that serving engines load, reloaded and compared
    Export(export::Args),
    /// Say what this installation can use: libtorch, CUDA, CPU features; check a model
    Doctor(doctor::Args),
}
