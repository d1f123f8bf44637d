//! Stacks of this process's threads, taken in a signal handler: of threads that use CPU time, by a timer each
//! ([`Sampling`]), and of any thread that is asked, whatever it waits for ([`Asking`]).
//!
//! What runs in the handler (`handler`, `walker`, `window`, `ring`) neither allocates nor locks: everything it needs is
//! made at the first start and kept for the rest of the process's life, so that a signal that comes late finds it.
//!
//! The signal is a real-time one that nobody else handles. The handler does not run on an alternative stack: Rust gives
//! its threads one of 8 kB, which a walk needs most of. It runs with all signals blocked, for some 10 microseconds.
//! System calls go on afterwards (SA_RESTART), but for those that never do: a call of `poll`, `epoll_wait` or
//! `nanosleep` that a signal meets returns EINTR, as after any other signal.
//!
//! A forked child inherits no timer, and a child that was started with `exec` no handler.

mod asking;
mod handler;
mod modules;
mod realigned;
mod record;
mod registers;
mod ring;
mod session;
mod signal;
mod state;
mod timer;
mod walker;
mod window;

pub use asking::Asking;
pub use handler::{Labeller, set_thread_tag};
pub use record::{End, FRAMES, Label, SPANS, Sample};
pub use session::Sampling;
pub use timer::ThreadTimer;
