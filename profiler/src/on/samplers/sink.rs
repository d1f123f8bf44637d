//! Where samplers put what they read.

use std::collections::HashMap;
use std::sync::Arc;

use dflash_timeline::record::Severity;

use crate::on::event::Remark;
use crate::on::hub::Hub;

/// Takes readings and remarks; a test has its own.
pub(crate) trait Sink {
    /// A reading of now. One that is no finite number is left out.
    fn sample(&mut self, name: &str, unit: &'static str, value: f64);

    /// Something to be said in the timeline.
    fn mark(&mut self, severity: Severity, text: String);
}

/// Into the timeline, at whatever level: samplers look at the machine, not at the program's spans.
#[derive(Debug)]
pub(crate) struct HubSink {
    hub: Arc<Hub>,
    /// Numbers of the counters used so far.
    counters: HashMap<String, u32>,
}

impl HubSink {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, counters: HashMap::new() }
    }
}

impl Sink for HubSink {
    fn sample(&mut self, name: &str, unit: &'static str, value: f64) {
        if !value.is_finite() {
            return;
        }
        let counter = self.counters.get(name).copied().unwrap_or_else(|| {
            let counter = self.hub.counter(name, unit);
            self.counters.insert(name.to_owned(), counter);
            counter
        });
        self.hub.remark(Remark::Sample { counter, at: self.hub.clock.ticks(), value });
    }

    fn mark(&mut self, severity: Severity, text: String) {
        self.hub.remark(Remark::Mark { severity, at: self.hub.clock.ticks(), text });
    }
}
