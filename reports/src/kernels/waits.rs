//! Host waits in a capture: calls that keep a thread until its device has done something (`cudaStreamSynchronize` and its
//! kin), and whether a span `sync.*` says so. Calls in bare iterations are left out: those have no spans to say anything.

use super::meta::{Meta, Offset};
use super::trace::Trace;
use crate::intervals::Union;
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Kind, LaneId};
use serde::Serialize;
use std::collections::BTreeMap;

/// A call may begin or end this much off the span around it: what the two clocks take.
const SLACK_NS: i64 = 100_000;
/// Name of the threads on which libtorch runs backward passes: waits there hold up a lane, too.
pub(crate) const AUTOGRAD: &str = "pt_autograd";

/// One thread's calls that waited for a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostWaits {
    /// The thread: a lane, or one of libtorch's for backward passes.
    pub thread: String,
    /// Calls in the capture, outside of bare iterations.
    pub calls: u64,
    /// Time that they took, nanoseconds.
    pub total_ns: u64,
    /// Of the calls, those outside of every span `sync.*`.
    pub unsaid: u64,
    /// Their time, nanoseconds.
    pub unsaid_ns: u64,
}

/// The waits of every lane and of libtorch's own threads; a lane that never waited has its row, with zeros.
pub(super) fn host_waits(timeline: &Timeline, meta: &Meta, trace: &Trace, offset: &Offset) -> Vec<HostWaits> {
    let lanes = timeline.lanes.iter().filter(|lane| lane.rank == meta.rank).map(|lane| lane.name.as_str());
    let mut found: BTreeMap<&str, HostWaits> = BTreeMap::new();
    for thread in trace.threads.values().map(String::as_str) {
        if lanes.clone().any(|lane| lane == thread) || thread.starts_with(AUTOGRAD) {
            found.insert(thread, HostWaits { thread: thread.to_owned(), ..HostWaits::default() });
        }
    }
    let words = Words::of(timeline);
    let told: BTreeMap<&str, [Union; 2]> = found
        .keys()
        .map(|&thread| (thread, [said(timeline, &words, meta.rank, thread), bare(timeline, meta.rank, thread)]))
        .collect();
    for wait in &trace.waits {
        let Some(thread) = trace.threads.get(&wait.thread) else { continue };
        let (Some(row), Some([said, bare])) = (found.get_mut(thread.as_str()), told.get(thread.as_str())) else {
            continue;
        };
        let begin = offset.monotonic(wait.begin_ns.saturating_add(trace.base_ns));
        let call = (begin, begin.saturating_add(wait.duration_ns));
        if bare.covered((begin, begin.saturating_add(1))) > 0 {
            continue;
        }
        let length = call.1.abs_diff(call.0);
        (row.calls, row.total_ns) = (row.calls + 1, row.total_ns.saturating_add(length));
        if said.covered(call) < length || length == 0 && said.covered((call.0, call.0 + 1)) == 0 {
            (row.unsaid, row.unsaid_ns) = (row.unsaid + 1, row.unsaid_ns.saturating_add(length));
        }
    }
    found.into_values().collect()
}

/// When the thread's own lane said that it waited; of a backward pass, whose thread is no lane's, when a drafter did.
fn said(timeline: &Timeline, words: &Words, rank: u32, thread: &str) -> Union {
    let spans = timeline.spans.iter().filter(|span| words.get(span.name).sync);
    let own = spans.filter(|span| is_own(timeline, rank, thread, span.lane));
    let stretch = |begin: i64, duration: u64| {
        (begin.saturating_sub(SLACK_NS), begin.saturating_add_unsigned(duration).saturating_add(SLACK_NS))
    };
    Union::of(own.map(|span| stretch(span.begin_ns, span.duration_ns)).collect())
}

/// When the thread's own lane ran without spans.
fn bare(timeline: &Timeline, rank: u32, thread: &str) -> Union {
    let bare = timeline.iterations.iter().filter(|iteration| iteration.kind == Kind::Bare);
    let own = bare.filter(|iteration| is_own(timeline, rank, thread, iteration.lane));
    Union::of(own.map(|i| (i.begin_ns, i.begin_ns.saturating_add_unsigned(i.duration_ns))).collect())
}

/// Whether what a lane records tells of a thread: of its own, or of the one that makes a drafter's backward pass.
fn is_own(timeline: &Timeline, rank: u32, thread: &str, lane: LaneId) -> bool {
    let backward = thread.starts_with(AUTOGRAD);
    let matches = |name: &str| name == thread || backward && name.starts_with("drafter:");
    timeline.lane(lane).is_some_and(|lane| lane.rank == rank && matches(&lane.name))
}
