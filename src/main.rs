//! `dflash`: trains DFlash drafters, and says where every millisecond of the training went.
//!
//! Reads runs itself, and leaves what computes to `dflash-train`.

mod hand_over;

use std::process::ExitCode;

fn main() -> ExitCode {
    dflash::main(|_| Err(hand_over::to_trainer()))
}
