//! fastrace: local spans under a root. They gather in the thread's own queue and go to the collector together when the
//! root is left, which is part of the time.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrace::Span;
use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::local::LocalSpan;
use fastrace::prelude::SpanContext;

use crate::subject::{Account, Subject, time, wait_until};

/// Recording, with a reporter that counts and drops.
#[derive(Debug)]
pub struct Fastrace {
    made: AtomicU64,
    arrived: Arc<AtomicU64>,
}

struct Count(Arc<AtomicU64>);

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        self.0.fetch_add(spans.len() as u64, Ordering::Relaxed);
    }
}

impl Fastrace {
    /// Starts its collector's thread.
    #[must_use]
    pub fn start() -> Self {
        let arrived = Arc::new(AtomicU64::new(0));
        fastrace::set_reporter(Count(Arc::clone(&arrived)), Config::default());
        Self { made: AtomicU64::new(0), arrived }
    }
}

impl Subject for Fastrace {
    fn name(&self) -> &'static str {
        "fastrace"
    }

    fn round(&self, spans: u32) -> Duration {
        let root = Span::root("bench.root", SpanContext::random());
        let parent = root.set_local_parent();
        let begin = Instant::now();
        (0..spans).for_each(|i| {
            let _span = LocalSpan::enter_with_local_parent("bench.span");
            black_box(i);
        });
        drop(parent);
        let took = begin.elapsed();
        self.made.fetch_add(u64::from(spans) + 1, Ordering::Relaxed);
        took
    }

    fn settle(&self) {
        fastrace::flush();
        wait_until(|| self.account().is_some_and(|a| a.arrived >= a.made));
    }

    fn account(&self) -> Option<Account> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Some(Account { made: load(&self.made), arrived: load(&self.arrived) })
    }
}

/// A local span without a parent: fastrace's way of being off.
#[derive(Debug)]
pub struct FastraceOff;

impl Subject for FastraceOff {
    fn name(&self) -> &'static str {
        "fastrace, no parent"
    }

    fn round(&self, spans: u32) -> Duration {
        time(spans, |i| {
            let _span = LocalSpan::enter_with_local_parent("bench.span");
            black_box(i);
        })
    }
}
