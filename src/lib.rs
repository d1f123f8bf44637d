//! The command `dflash`, but for what computes: `src/main.rs` and `src/bin/dflash-train` are the two programs made of it.
//!
//! The trainer is named nowhere here. What names it is linked against libtorch, which takes more memory before `main` begins than
//! `dflash top` may ever take.

pub mod args;
pub mod build;
mod cli;
mod commands;
pub mod exit;
mod help;
pub mod output;
pub mod run_arg;
mod select_arg;

pub use cli::main;
