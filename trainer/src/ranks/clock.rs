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

/// What has been asked so far. No number is given twice: a late answer to what an earlier measurement asked is none.
pub(super) struct Questions {
    answers: Receiver<Answer>,
    next: u64,
}

impl Questions {
    pub(super) fn new(answers: Receiver<Answer>) -> Self {
        Self { answers, next: 0 }
    }

    /// Asks by `ask`, which gets the question's number; `None`: there was no answer in time.
    pub(super) fn measure(
        &mut self,
        clock: &Clock,
        mut ask: impl FnMut(u64) -> std::io::Result<()>,
    ) -> Option<ClockOffset> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..QUESTIONS {
            let number = self.next;
            self.next += 1;
            let asked_ns = clock();
            ask(number).ok()?;
            let answer = loop {
                let answer = self.answers.recv_timeout(LONGEST).ok()?;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::sync::mpsc;

    #[test]
    fn an_answer_to_an_earlier_measurement_is_none_to_this_one() {
        let now = Arc::new(AtomicI64::new(0));
        let own = Arc::clone(&now);
        let clock: Clock = Arc::new(move || own.fetch_add(10, Ordering::Relaxed));
        let (answers, answered) = mpsc::channel();
        let mut questions = Questions::new(answered);
        // The first measurement breaks off, and its answer comes when nobody waits for it any more.
        let mut lost = None;
        let nothing = questions.measure(&clock, |number| {
            lost = Some(number);
            Err(std::io::ErrorKind::TimedOut.into())
        });
        assert_eq!(nothing, None);
        answers.send(Answer { number: lost.unwrap(), at_ns: 1_000, came_ns: clock() }).unwrap();
        now.store(30_000_000_000, Ordering::Relaxed);
        let offset = questions.measure(&clock, |number| {
            let at_ns = clock() + 500;
            answers.send(Answer { number, at_ns, came_ns: clock() }).unwrap();
            Ok(())
        });
        assert_eq!(offset, Some(ClockOffset { offset_ns: 500, uncertainty_ns: 10 }));
    }
}
