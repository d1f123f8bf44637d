//! Exit codes, and how an error finds its own.

use crate::output::say;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Everything went well.
pub const FINE: u8 = 0;
/// `diff` found a regression.
pub const REGRESSION: u8 = 1;
/// Bad input or usage.
pub const BAD_INPUT: u8 = 2;
/// Inconclusive or not comparable, with `--strict`.
pub const INCONCLUSIVE: u8 = 3;
/// It failed while running: the training died, a device was lost, memory ran out.
pub const FAILED: u8 = 4;

/// Marks an error as one that came up while running; every other error is bad input.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WhileRunning(#[from] pub anyhow::Error);

/// Prints an error as one line with those causes that it does not name itself, and picks the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::from(FINE);
    }
    let mut text = format!("dflash: {error}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    say(&text);
    ExitCode::from(if error.is::<WhileRunning>() { FAILED } else { BAD_INPUT })
}

/// Runs a command; a panic in it becomes an error. `RUST_BACKTRACE` brings back Rust's own message.
pub fn without_panics<T>(command: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied());
        let text = first_line(text.unwrap_or("no message"));
        let error = anyhow::anyhow!("something failed that should not: {text}; RUST_BACKTRACE=1 says where");
        Err(WhileRunning(error).into())
    })
}

/// libtorch's messages bring a C++ backtrace along, with escaped line ends.
fn first_line(text: &str) -> &str {
    text.split(['\n']).next().unwrap_or(text).split("\\n").next().unwrap_or(text)
}

/// `dflash report | head` ends when head has seen enough: not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}
