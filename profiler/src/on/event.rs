//! What goes through a lane's ring: plain numbers, times in ticks. 40 bytes each: what only some records have comes in a
//! record of its own before them.

use std::sync::Arc;

use dflash_timeline::record::{FlowEnd, Kind, Severity};

use crate::StreamKey;

/// "None" of an index, an iteration, tokens or CPU time.
pub(crate) const NONE: u64 = u64::MAX;

/// One record of a lane, or what the next one has besides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Span {
        depth: u8,
        site: u32,
        index: u64,
        iteration: u64,
        begin: u64,
        end: u64,
    },
    /// Where the span that follows lies among the moments recorded on its stream.
    Ticket(Ticket),
    /// What the iteration that follows used.
    Usage {
        cpu_ns: u64,
        tokens: u64,
    },
    Iteration {
        kind: Kind,
        pairing: Pairing,
        number: u64,
        begin: u64,
        end: u64,
    },
    Flow {
        end: FlowEnd,
        id: u64,
        at: u64,
    },
    Allocator {
        what: Moved,
        site: u32,
        at: u64,
        value: u64,
    },
}

/// The numbers of two moments on one stream, see [`device`](super::device).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub begin: u64,
    pub end: u64,
    pub stream: StreamKey,
}

/// How an iteration takes part in measuring what instrumentation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    Alone,
    First { bare: bool },
    Second { bare: bool },
}

impl Pairing {
    pub(crate) fn is_bare(self) -> bool {
        matches!(self, Self::First { bare: true } | Self::Second { bare: true })
    }
}

/// Which of an allocator's counters a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Of a stage.
    DeviceAllocations,
    DeviceFrees,
    Retries,
    OutOfMemory,
    /// Of an iteration.
    Allocations,
    Reserved,
    Active,
}

/// What any thread may record, lane or not.
#[derive(Debug)]
pub(crate) enum Remark {
    Sample { counter: u32, at: u64, value: f64 },
    Mark { severity: Severity, at: u64, text: String },
    Stack(Box<Stack>),
}

/// A thread's sampled stack.
#[derive(Debug)]
pub(crate) struct Stack {
    pub time_ns: i64,
    pub tid: u32,
    pub thread: Arc<str>,
    /// Name and device.
    pub lane: Option<(String, String)>,
    pub iteration: Option<u64>,
    /// Call sites of open spans, outermost first.
    pub spans: Vec<u32>,
    /// Functions, outermost first.
    pub frames: Vec<Arc<str>>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_record_is_small() {
        assert_eq!(size_of::<super::Event>(), 40);
    }
}
