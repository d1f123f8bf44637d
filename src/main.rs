//! `dflash`: trains DFlash drafters, and says where every millisecond of the training went.

mod cli;
mod commands;
mod exit;
mod help;
mod output;
mod run_arg;
mod select_arg;
#[cfg(feature = "train")]
mod show;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::take();
    #[cfg(feature = "train")]
    if cli.computes() {
        dflash_sys::keep_freed_memory(); // tensors come and go all the time
    }
    exit::without_panics(|| cli.run()).unwrap_or_else(|error| exit::report(&error))
}
