//! The command `dflash`, but for what computes: `src/main.rs` and `src/bin/dflash-train` are the two programs made of it.
//!
//! The trainer is named nowhere here. What names it is linked against libtorch, which takes 119 MB before `main` begins.

pub mod args;
mod cli;
mod commands;
pub mod exit;
mod help;
pub mod output;
pub mod run_arg;
mod select_arg;

pub use cli::main;
