//! What the writer says of the recording itself: its totals, what it costs.

use std::sync::atomic::Ordering;

use dflash_timeline::record::{OpenSpan, Totals};

use super::Writer;
use crate::on::account::Source;

impl Writer {
    pub(super) fn sample(&mut self) {
        let cpu_ns = dflash_sys::thread_cpu_ns() + self.hub.device.cpu_ns.load(Ordering::Relaxed);
        let synced = self.out.sync_stats();
        if synced.problem != self.sync_problem {
            let text =
                synced.problem.as_ref().map(|problem| format!("the timeline cannot be brought to the disk: {problem}"));
            text.into_iter().for_each(|text| self.out.warn(text));
            self.sync_problem = synced.problem;
        }
        let readings = [
            ("profiler.cpu", "ns", cpu_ns as f64),
            ("profiler.sync.cpu", "ns", synced.cpu_ns as f64),
            ("profiler.pack.cpu", "ns", self.out.pack_cpu_ns() as f64),
            ("profiler.bytes", "bytes", self.out.bytes() as f64),
        ];
        let time_ns = dflash_sys::monotonic_ns();
        for (name, unit, value) in readings {
            self.out.own_sample(name, unit, time_ns, value);
        }
        for (role, cpu_ns) in self.hub.threads.cpu_ns() {
            self.out.own_sample(role.counter(), "ns", time_ns, cpu_ns as f64);
        }
    }

    /// What is open, and the totals so far.
    pub(super) fn state(&mut self) -> (Vec<OpenSpan>, Totals) {
        self.count_made();
        let (map, out) = (&self.map, &mut self.out);
        let open: Vec<OpenSpan> = self.feeds.iter().flat_map(|feed| feed.open(map, out)).collect();
        let faults = self.feeds.iter().fold(self.retired_faults, |sum, feed| sum.plus(&feed.faults()));
        let open_spans = open.len() as u64 + self.retired_faults.open;
        let Totals { emitted, dropped, .. } = self.out.accounts.totals();
        (open, Totals { emitted, dropped, open: open_spans, ..faults })
    }

    /// Asks everybody what he has made so far.
    pub(super) fn count_made(&mut self) {
        let accounts = &mut self.out.accounts;
        accounts.forget_made();
        self.retired.iter().for_each(|(source, emitted, dropped)| accounts.made(*source, *emitted, *dropped));
        for feed in &self.feeds {
            let (emitted, dropped) = feed.made();
            accounts.made(feed.source, emitted, dropped);
        }
        let (emitted, dropped) = self.hub.remarks.counts();
        let own = self.out.own;
        self.out.accounts.made(Source::NOBODY, emitted + own, dropped);
    }
}
