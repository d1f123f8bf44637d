//! How far this host's clock is from rank 0's: asked twenty times, of which the quickest answer counts.

use super::Clock;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Questions of one measurement.
const QUESTIONS: u64 = 20;
/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(5);

/// What to add to this host's monotonic clock to get rank 0's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds.
    pub offset_ns: i64,
    /// How far it may be off, nanoseconds: half of the round trip.
    pub uncertainty_ns: i64,
}

/// An answer.
pub(super) struct Answer {
    pub(super) number: u64,
    /// Rank 0's clock when it answered.
    pub(super) at_ns: i64,
    /// This host's when the answer came.
    pub(super) came_ns: i64,
}

/// Asks by `ask`, which gets the question's number; `None`: there was no answer in time.
pub(super) fn measure(
    clock: &Clock,
    answers: &Receiver<Answer>,
    mut ask: impl FnMut(u64) -> std::io::Result<()>,
) -> Option<ClockOffset> {
    let mut best: Option<ClockOffset> = None;
    for number in 0..QUESTIONS {
        let asked_ns = clock();
        ask(number).ok()?;
        let answer = loop {
            let answer = answers.recv_timeout(LONGEST).ok()?;
            // A late answer to an earlier question is none.
            if answer.number == number {
                break answer;
            }
        };
        let uncertainty_ns = (answer.came_ns - asked_ns + 1) / 2;
        let offset_ns = answer.at_ns - (asked_ns + (answer.came_ns - asked_ns) / 2);
        if best.is_none_or(|best| uncertainty_ns < best.uncertainty_ns) {
            best = Some(ClockOffset { offset_ns, uncertainty_ns });
        }
    }
    best
}
