//! Control while running: a unix socket over which the same user may look at the run and ask things of it.
//!
//! `place` finds a directory for the socket that nobody else can reach, `server` accepts on the thread `dflash-control`,
//! `visit` talks with one client on a thread of its own, `answers` does what is asked. Nothing here can hold up the
//! training: what it shares with it are atomics and locks that are held for microseconds.

mod answers;
mod api;
mod by;
mod capture;
mod cost;
mod kernels;
mod kernels_file;
mod lanes;
mod pace;
mod pass;
mod place;
mod reply;
mod requests;
mod sampled;
mod server;
mod status;
mod visit;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use dflash_timeline::RunDir;
use dflash_timeline::record::{Severity, Totals};

use super::event::Remark;
use super::hub::{Hub, lock};
use super::profiler::{Inner, Profiler};
use crate::Options;
use kernels::Kernels;
use lanes::Lanes;
use server::{Leaving, Server};

pub(crate) use pass::Pass;
pub use requests::Requests;

/// Everything that can be asked of one profiler. Visitors hold this and never the profiler itself: a client that stays
/// must not keep a recording alive whose last handle was dropped.
#[derive(Debug)]
pub(crate) struct Control {
    hub: Arc<Hub>,
    run: RunDir,
    rank: u32,
    attempt: u32,
    began: Instant,
    pub(super) lanes: Lanes,
    requests: Requests,
    kernels: Kernels,
    /// The recording ends.
    closing: AtomicBool,
    /// CPU time of visitors that have left, nanoseconds.
    visits_cpu_ns: AtomicU64,
    inner: OnceLock<Weak<Inner>>,
    server: Mutex<Option<Server>>,
}

/// What the writer says after each block, for whoever asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoFar {
    pub totals: Totals,
    /// In the timeline.
    pub bytes: u64,
}

impl Control {
    pub(super) fn new(hub: Arc<Hub>, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            hub,
            run: options.run.clone(),
            rank: options.rank,
            attempt: options.attempt,
            began: Instant::now(),
            lanes: Lanes::default(),
            requests: Requests::default(),
            kernels: Kernels::default(),
            closing: AtomicBool::new(false),
            visits_cpu_ns: AtomicU64::new(0),
            inner: OnceLock::new(),
            server: Mutex::default(),
        })
    }

    /// Begins to listen. That it cannot is noted in the timeline; the training goes on.
    pub(super) fn open(self: &Arc<Self>, inner: &Arc<Inner>) {
        // Set here alone, so it cannot be set already.
        let _ = self.inner.set(Arc::downgrade(inner));
        match Server::open(self) {
            Ok(server) => *lock(&self.server) = Some(server),
            Err(problem) => self.mark(Severity::Info, format!("control: this run takes no requests: {problem}")),
        }
    }

    /// Ends: the socket vanishes, visitors are sent away, a kernel capture is brought to its end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let server = lock(&self.server).take();
        let leaving = server.map(Server::close);
        self.requests.close();
        self.kernels.close(&self.hub);
        // Whoever waited for one of those has its answer by now.
        leaving.into_iter().for_each(Leaving::hear_out);
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The profiler, for what only it can do. Let it go soon.
    fn profiler(&self) -> Result<Profiler, String> {
        let inner = self.inner.get().and_then(Weak::upgrade);
        inner.map(|inner| Profiler(Some(inner))).ok_or_else(|| "the recording has ended".to_owned())
    }

    fn mark(&self, severity: Severity, text: String) {
        mark(&self.hub, severity, text);
    }
}

/// Notes something in the timeline.
fn mark(hub: &Hub, severity: Severity, text: String) {
    hub.remark(Remark::Mark { severity, at: hub.clock.ticks(), text });
}
