//! puffin: scopes in an outer scope, as in a frame. They gather in the thread's own stream, which the end of the outer
//! scope hands on: part of the time, as it is of a frame's.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use puffin::{FrameSinkId, GlobalProfiler, profile_scope, set_scopes_on};

use crate::subject::{Account, Subject};

/// Recording, with a sink that counts and drops.
#[derive(Debug)]
pub struct Puffin {
    made: AtomicU64,
    arrived: Arc<AtomicU64>,
    sink: FrameSinkId,
}

impl Puffin {
    /// Adds the sink.
    #[must_use]
    pub fn start() -> Self {
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        let sink = GlobalProfiler::lock().add_sink(Box::new(move |frame| {
            count.fetch_add(frame.meta().num_scopes as u64, Ordering::Relaxed);
        }));
        Self { made: AtomicU64::new(0), arrived, sink }
    }
}

impl Drop for Puffin {
    fn drop(&mut self) {
        GlobalProfiler::lock().remove_sink(self.sink);
    }
}

impl Subject for Puffin {
    fn name(&self) -> &'static str {
        "puffin"
    }

    fn round(&self, spans: u32) -> Duration {
        set_scopes_on(true);
        let took = {
            let begin = Instant::now();
            frame(spans);
            begin.elapsed()
        };
        self.made.fetch_add(u64::from(spans) + 1, Ordering::Relaxed);
        took
    }

    fn settle(&self) {
        GlobalProfiler::lock().new_frame();
    }

    fn account(&self) -> Option<Account> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Some(Account { made: load(&self.made), arrived: load(&self.arrived) })
    }
}

/// The same scopes, switched off while running.
#[derive(Debug)]
pub struct PuffinOff;

impl Subject for PuffinOff {
    fn name(&self) -> &'static str {
        "puffin, off"
    }

    fn round(&self, spans: u32) -> Duration {
        set_scopes_on(false);
        let begin = Instant::now();
        frame(spans);
        begin.elapsed()
    }
}

/// The same machine code on and off.
#[inline(never)]
fn frame(spans: u32) {
    profile_scope!("bench.frame");
    (0..spans).for_each(|i| {
        profile_scope!("bench.span");
        black_box(i);
    });
}
