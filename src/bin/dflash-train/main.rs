//! `dflash-train`: the commands of `dflash` that compute, linked against libtorch. `dflash` becomes this program for them.
//!
//! Started by hand it does what `dflash` does, reading commands too: both are made of the same definitions.

mod doctor;
mod eval;
mod exit;
mod export;
mod prepare;
mod show;
mod train;

use dflash::args::Compute;
use dflash::build;
use dflash::output::say;
use std::process::ExitCode;

fn main() -> ExitCode {
    dflash::main(|what| {
        dflash_sys::keep_freed_memory(); // tensors come and go all the time
        if let Some(warning) = build::differs() {
            say(&warning);
        }
        match what {
            Compute::Prepare(args) => prepare::run(args),
            Compute::Train(args) => train::run(args),
            Compute::Eval(args) => eval::run(args),
            Compute::Export(args) => export::run(args),
            Compute::Doctor(args) => doctor::run(args),
        }
    })
}
