//! What goes wrong between here and libtorch.

use std::path::PathBuf;

/// A call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TorchError {
    /// Streams, events and allocator counters are a GPU's.
    #[error("{device} has no streams and no events: they are a GPU's, cuda:N")]
    NotAGpu {
        /// What was asked for.
        device: String,
    },
    /// There is no GPU with this number, or none at all.
    #[error("cuda:{device} is not there: {why}")]
    NoGpu {
        /// Its number.
        device: usize,
        /// What is missing.
        why: String,
    },
    /// An event of one device was to be recorded on, or compared with, another device.
    #[error("{what} of cuda:{one} and {with} of cuda:{other} do not go together: use those of one device")]
    TwoDevices {
        /// `an event`.
        what: &'static str,
        /// Its device.
        one: i16,
        /// `a stream` or `an event`.
        with: &'static str,
        /// The other's device.
        other: i16,
    },
    /// The event has no moment yet.
    #[error("the event was never recorded: record it on a stream first")]
    NotRecorded,
    /// The stream has not got to the event.
    #[error("the event is not ready: its stream has not got there yet")]
    NotReady,
    /// Time was asked of an event that keeps none, or of two that were made in different ways.
    #[error("these events have no time between them: make both with Event::timed")]
    Untimed,
    /// libtorch or the device refused.
    #[error("{doing}: {words}")]
    Torch {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        words: String,
    },
    /// A capture runs already: this process's, or another profiler of libtorch.
    #[error("a kernel capture runs already: wait for its end")]
    Capturing,
    /// No capture was begun, or it has ended.
    #[error("no kernel capture runs: begin one first")]
    NotCapturing,
    /// Operators that began in the capture have not ended: their end will be written into the capture's memory.
    #[error("{count} operators that began in the last kernel capture have not ended yet: try again once they have")]
    InFlight {
        /// How many.
        count: i64,
    },
    /// The trace has no place to go. The capture ended all the same.
    #[error("{}: the trace cannot be written: {why}", file.display())]
    Trace {
        /// Where it was to go.
        file: PathBuf,
        /// What is in the way.
        why: String,
    },
}
