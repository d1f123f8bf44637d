//! CPU samples and stacks as they go over the socket.

use dflash_timeline::control::{self, Answer, SpanAge};

use crate::{CpuReport, ThreadStack};

/// What every thread does.
pub(super) fn stacks(threads: Vec<ThreadStack>) -> Answer {
    Answer::Stacks(threads.into_iter().map(stack).collect())
}

fn stack(thread: ThreadStack) -> control::ThreadStack {
    let ThreadStack { name, tid, state, lane, iteration, spans, frames, note } = thread;
    let age = |(name, age): (String, std::time::Duration)| {
        let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        SpanAge { name, age_ns }
    };
    let spans = spans.into_iter().map(age).collect();
    control::ThreadStack { name, tid, state, lane, iteration, spans, frames, note }
}

/// What sampling came to.
pub(super) fn report(report: &CpuReport) -> Answer {
    let CpuReport { asked_hz, achieved_hz, samples, lost, threads, seconds, .. } = *report;
    Answer::Cpu(control::CpuReport { asked_hz, achieved_hz, samples, lost, threads, seconds, text: report.to_string() })
}
