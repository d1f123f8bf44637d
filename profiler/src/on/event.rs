//! What goes through a lane's ring: plain numbers, times in ticks.

use std::sync::Arc;

use dflash_timeline::record::{FlowEnd, Kind, Severity};

/// "None" of an index or an iteration.
pub(crate) const NONE: u64 = u64::MAX;

/// One record of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Span { depth: u8, site: u32, index: u64, iteration: u64, begin: u64, end: u64 },
    Iteration { kind: Kind, number: u64, begin: u64, end: u64, cpu_ns: u64, tokens: u64 },
    Flow { end: FlowEnd, id: u64, at: u64 },
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
