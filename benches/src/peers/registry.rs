//! tracing: without a subscriber, and with a registry alone, which knows a span only while it is open.

use std::hint::black_box;
use std::time::Duration;

use tracing::Dispatch;
use tracing::dispatcher::{get_default, with_default};
use tracing_subscriber::layer::Identity;
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::subject::{Subject, time};

/// A registry alone, as the calling thread's subscriber: the process has only one, and that is tracing-chrome's here.
#[derive(Debug)]
pub struct Registry(Dispatch);

impl Registry {
    /// Makes it. A registry frees the spans that end only where a layer sits on it, so it gets one that does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Dispatch::new(tracing_subscriber::registry().with(Identity::new())))
    }

    /// Whether the registry knows a span while it is open, and no longer.
    #[must_use]
    pub fn holds_open_spans(&self) -> bool {
        with_default(&self.0, || {
            let span = tracing::info_span!("bench.look");
            let Some(id) = span.id() else { return false };
            let known = || {
                get_default(|d| {
                    d.downcast_ref().is_some_and(|r: &tracing_subscriber::Registry| r.span_data(&id).is_some())
                })
            };
            let open = known();
            drop(span);
            open && !known()
        })
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for Registry {
    fn name(&self) -> &'static str {
        "tracing, registry alone"
    }

    fn round(&self, spans: u32) -> Duration {
        with_default(&self.0, || {
            time(spans, |i| {
                let _span = tracing::info_span!("bench.span").entered();
                black_box(i);
            })
        })
    }
}

/// Nobody listens.
#[derive(Debug)]
pub struct TracingOff;

impl Subject for TracingOff {
    fn name(&self) -> &'static str {
        "tracing, no subscriber"
    }

    fn round(&self, spans: u32) -> Duration {
        time(spans, |i| {
            let _span = tracing::info_span!("bench.span").entered();
            black_box(i);
        })
    }
}
