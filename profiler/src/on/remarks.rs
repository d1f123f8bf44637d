//! Samples, marks and stacks on their way to the writer: each sort has a channel of its own, so that none pushes another out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::event::Remark;

/// How many of a sort may be ahead of the writer: samples, marks, stacks.
const ROOM: [usize; SORTS] = [1 << 14, 1 << 12, 1 << 14];
const SORTS: usize = 3;

/// Where any thread puts them.
#[derive(Debug)]
pub(crate) struct Remarks {
    channels: [SyncSender<Remark>; SORTS],
    emitted: AtomicU64,
    dropped: AtomicU64,
}

/// Where the writer takes them out.
#[derive(Debug)]
pub(crate) struct RemarksToWrite([Receiver<Remark>; SORTS]);

/// Both ends.
pub(crate) fn remarks() -> (Remarks, RemarksToWrite) {
    let [(samples, a), (marks, b), (stacks, c)] = ROOM.map(sync_channel);
    let (emitted, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
    (Remarks { channels: [samples, marks, stacks], emitted, dropped }, RemarksToWrite([a, b, c]))
}

impl Remarks {
    /// Puts one on its way; `false`: there is no room, which is counted.
    pub(crate) fn send(&self, remark: Remark) -> bool {
        let [samples, marks, stacks] = &self.channels;
        let channel = match remark {
            Remark::Sample { .. } => samples,
            Remark::Mark { .. } => marks,
            Remark::Stack(_) => stacks,
        };
        self.emitted.fetch_add(1, Ordering::Relaxed);
        let sent = channel.try_send(remark).is_ok();
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// How many were made, and how many of them found no room. Each is counted as made before it is dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let dropped = self.dropped.load(Ordering::Acquire);
        (self.emitted.load(Ordering::Acquire), dropped)
    }
}

impl RemarksToWrite {
    /// What is there now, marks first. Bounded, so that counters that never rest cannot keep the writer here.
    pub(crate) fn take(&self) -> impl Iterator<Item = Remark> + '_ {
        let [samples, marks, stacks] = &self.0;
        [marks, samples, stacks].into_iter().flat_map(|channel| channel.try_iter().take(1 << 15))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dflash_timeline::record::Severity;

    use super::remarks;
    use crate::on::event::{Remark, Stack};

    fn stack() -> Remark {
        let (spans, frames) = (Vec::new(), Vec::new());
        let thread: Arc<str> = "t".into();
        Remark::Stack(Box::new(Stack { time_ns: 0, tid: 1, thread, lane: None, iteration: None, spans, frames }))
    }

    #[test]
    fn stacks_and_samples_push_out_no_mark() {
        let (send, take) = remarks();
        let mut full = 0;
        for _ in 0..20_000 {
            full += u64::from(!send.send(stack()));
            full += u64::from(!send.send(Remark::Sample { counter: 0, at: 0, value: 0.0 }));
        }
        assert_eq!(full, 2 * (20_000 - (1 << 14)));
        assert!(send.send(Remark::Mark { severity: Severity::Warning, at: 0, text: "heard".into() }));
        assert_eq!(send.counts(), (40_001, full));
        assert!(matches!(take.take().next(), Some(Remark::Mark { text, .. }) if text == "heard"));
        assert_eq!(take.take().count(), 2 << 14);
    }
}
