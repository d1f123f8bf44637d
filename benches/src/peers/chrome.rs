//! tracing-chrome: the process's subscriber, with its writer's thread, which counts here what it would write.

use std::any::Any;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::prelude::*;

use crate::ours::Fault;
use crate::subject::{Account, Subject, time, wait_until};

/// Recording, into a writer that counts lines.
pub struct Chrome {
    made: AtomicU64,
    /// Threads that have made a span: each has a line with its name.
    threads: AtomicUsize,
    lines: Arc<AtomicU64>,
    flush: Mutex<FlushGuard>,
}

struct CountLines(Arc<AtomicU64>);

impl Write for CountLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        self.0.fetch_add(lines as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Chrome {
    /// Becomes the process's subscriber, which can happen once.
    pub fn start() -> Result<Self, Fault> {
        let lines = Arc::new(AtomicU64::new(0));
        let (layer, guard) = ChromeLayerBuilder::new().writer(CountLines(Arc::clone(&lines))).build();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        Ok(Self { made: AtomicU64::new(0), threads: AtomicUsize::new(0), lines, flush: Mutex::new(guard) })
    }
}

impl Subject for Chrome {
    fn name(&self) -> &'static str {
        "tracing-chrome"
    }

    fn enter(&self) -> Box<dyn Any> {
        self.threads.fetch_add(1, Ordering::Relaxed);
        Box::new(())
    }

    fn round(&self, spans: u32) -> Duration {
        let took = time(spans, |i| {
            let _span = tracing::info_span!("bench.span").entered();
            black_box(i);
        });
        self.made.fetch_add(u64::from(spans), Ordering::Relaxed);
        took
    }

    fn settle(&self) {
        self.flush.lock().unwrap_or_else(|e| e.into_inner()).flush();
        wait_until(|| self.account().is_some_and(|a| a.arrived >= a.made));
    }

    fn account(&self) -> Option<Account> {
        // A line for the opening bracket, then a line break between entries: two of a span, one of a thread.
        let entries = self.lines.load(Ordering::Relaxed);
        let arrived = entries.saturating_sub(self.threads.load(Ordering::Relaxed) as u64) / 2;
        Some(Account { made: self.made.load(Ordering::Relaxed), arrived })
    }
}
