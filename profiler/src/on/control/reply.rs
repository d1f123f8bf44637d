//! The way back to a client: lines, written within a deadline.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dflash_timeline::control::Answer;

/// How long a client may take to read a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a long answer says what it waits for.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Answers one client.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    stream: &'a UnixStream,
    said: Option<Instant>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(stream: &'a UnixStream) -> Self {
        Self { stream, said: None }
    }

    /// Sends a line; an error means that the client is gone, or does not read.
    pub(super) fn send(&mut self, answer: &Answer) -> io::Result<()> {
        let line = answer.line();
        let (mut rest, end) = (line.as_bytes(), Instant::now() + PATIENCE);
        while !rest.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_write_timeout(Some(left))?;
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says what is being waited for: at once, then once a second.
    pub(super) fn progress(&mut self, text: impl FnOnce() -> String) -> io::Result<()> {
        if self.said.is_some_and(|said| said.elapsed() < PROGRESS_EVERY) {
            return Ok(());
        }
        self.said = Some(Instant::now());
        self.send(&Answer::Progress(text()))
    }
}
