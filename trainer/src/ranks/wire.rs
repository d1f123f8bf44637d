//! What ranks say to each other: lines of JSON over TCP, between rank 0 and each of the others.

use super::Gone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest line: a configuration has some kilobytes.
const LONGEST: u64 = 16 << 20;

/// To rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Up {
    /// The first line. The secret is in the store: whoever knows it was started with this training.
    Join { secret: u64, rank: usize, who: String },
    /// A part of what is gathered: JSON as a text, see [`Ranks::gather`](super::Ranks::gather).
    Part { round: u64, value: String },
    /// A sign of life.
    Beat,
    /// Asks for the time.
    Ping { number: u64 },
    /// This rank has failed.
    Failed { cause: String },
    /// This rank has come to its end.
    Bye,
}

/// From rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Down {
    /// All parts, in the ranks' order.
    All { round: u64, values: Vec<String> },
    /// A sign of life.
    Beat,
    /// The time at rank 0 when it was asked.
    Pong { number: u64, at_ns: i64 },
    /// A rank has ended the training for all.
    Ended(Gone),
}

/// The writing half of a connection.
#[derive(Debug)]
pub(super) struct Sender(Mutex<TcpStream>);

/// The reading half.
#[derive(Debug)]
pub(super) struct Receiver(BufReader<TcpStream>);

/// Both halves of a connection on which nothing takes longer than `silence`.
pub(super) fn halves(stream: TcpStream, silence: Duration) -> io::Result<(Sender, Receiver)> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    stream.set_write_timeout(Some(silence))?;
    Ok((Sender(Mutex::new(stream.try_clone()?)), Receiver(BufReader::new(stream))))
}

impl Sender {
    /// Sends a line.
    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }

    /// Ends the connection in both directions.
    pub(super) fn close(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It may be closed already.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Receiver {
    /// Waits for a line.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = Vec::new();
        let read = self.0.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

/// What became of the process at a connection's other end.
pub(super) fn lost(error: &io::Error, silence: Duration) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("has said nothing for {silence:?}: it hangs, or its host or the network is gone")
        }
        ErrorKind::InvalidData => format!("says what cannot be understood ({error}); is it another version of dflash?"),
        _ => "is gone: its connection ended without a word, as when a process is killed".to_owned(),
    }
}
