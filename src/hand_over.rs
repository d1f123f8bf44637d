//! Becomes `dflash-train`, which links libtorch, for the commands that need it.

use anyhow::{Context, Error, anyhow};
use dflash::build;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

const TRAINER: &str = "dflash-train";

/// Replaces this process by the program beside this one, with the words that were typed: what started this one goes on to
/// see the same process. Returns why that could not be done.
pub fn to_trainer() -> Error {
    // Links are followed: the two lie together where they were built or installed.
    let own = match env::current_exe().with_context(|| format!("cannot find where {TRAINER} lies")) {
        Ok(own) => own,
        Err(error) => return error,
    };
    let program = own.with_file_name(TRAINER);
    let mut typed = env::args_os();
    let mut command = Command::new(&program);
    command.env(build::VARIABLE, build::own());
    if let Some(name) = typed.next() {
        command.arg0(name);
    }
    let error = command.args(typed).exec();
    if program.exists() {
        return Error::from(error).context(format!("cannot start {}", program.display()));
    }
    anyhow!(
        "this is done by {TRAINER}, the program that needs libtorch, and {} is not there; build both with \
         `scripts/libtorch && cargo build --release` (README.md) and keep them in one directory; the commands that \
         read a run need no more than this program",
        program.display()
    )
}
