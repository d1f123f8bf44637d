//! What CPU sampling is told, and what it answers.

use std::fmt;
use std::time::Duration;

/// How threads are sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Libraries, by file name (`libcuda.so.1`) or whole path, never by a part of either: a sample whose innermost
    /// function lies in one of them is counted and dropped.
    pub block: Vec<String>,
    /// Whether the profiler's own threads (`dflash-*`) are sampled, too.
    pub own_threads: bool,
}

/// What CPU sampling came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CpuReport {
    /// Samples that were asked for, in a second of a thread's CPU time.
    pub asked_hz: u32,
    /// Samples that came, those of blocked libraries included, in a second of the sampled threads' CPU time. 0 if they
    /// used none.
    pub achieved_hz: f64,
    /// Samples that were kept.
    pub samples: u64,
    /// Samples that were taken and lost, because they were not collected or written in time.
    pub lost: u64,
    /// Threads that were sampled.
    pub threads: u64,
    /// How long it went on, seconds.
    pub seconds: f64,
    /// CPU time that the sampled threads used meanwhile, seconds.
    pub cpu_seconds: f64,
    /// Samples in blocked libraries, dropped.
    pub blocked: u64,
    /// Samples whose outermost functions are missing: the stack was too deep, or could not be followed.
    pub cut: u64,
    /// The profiler's own threads, which were left out.
    pub own_threads: u64,
    /// Threads that could not be sampled, because they block the signal or the system gave no timer.
    pub unwatched: u64,
    /// CPU time of the sampled threads that went into sampling them, seconds: the walks, without the kernel's part. It is
    /// in `cpu_seconds`.
    pub handler_seconds: f64,
    /// Whether somebody else took the signal, which ended the sampling early.
    pub taken_over: bool,
}

impl fmt::Display for CpuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked_hz, achieved_hz, samples, lost, threads, seconds, cpu_seconds, .. } = self;
        write!(f, "CPU sampling: {achieved_hz:.1} Hz of {asked_hz} Hz asked, {samples} samples and {lost} lost, ")?;
        write!(f, "{threads} threads with {cpu_seconds:.1} s of CPU time in {seconds:.1} s")?;
        let parts = [
            (self.blocked, "in blocked libraries"),
            (self.cut, "with cut stacks"),
            (self.own_threads, "threads of the profiler left out"),
            (self.unwatched, "threads out of reach"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        if self.taken_over { f.write_str("; ended early, since other code took the signal") } else { Ok(()) }
    }
}

/// What one thread is doing now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadStack {
    /// The thread's name; threads that nobody named have their creator's.
    pub name: String,
    /// Its number in its system.
    pub tid: u32,
    /// `running`, `sleeping`, `waiting for a device`, `stopped`, …: what the kernel says.
    pub state: String,
    /// The lane that it works for, itself or on another thread's behalf.
    pub lane: Option<String>,
    /// The lane's iteration.
    pub iteration: Option<u64>,
    /// The lane's open spans and how long each has been open, outermost first.
    pub spans: Vec<(String, Duration)>,
    /// Functions, innermost first; empty if the thread did not answer.
    pub frames: Vec<String>,
    /// Why it did not answer, with what is known of it; or that its stack is longer than what is shown.
    pub note: Option<String>,
}
