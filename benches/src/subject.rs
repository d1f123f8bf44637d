//! What is measured: something that begins and ends spans, and can say how many of them arrived.

use std::any::Any;
use std::time::{Duration, Instant};

/// Spans of a round. Far below every ring and queue of every peer, and long enough that two readings of the clock around
/// them weigh nothing.
pub const SPANS: u32 = 1_000;

/// One way to time a stretch of code.
pub trait Subject: Sync {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// What a thread needs before its first round, until it is dropped.
    fn enter(&self) -> Box<dyn Any> {
        Box::new(())
    }

    /// Begins and ends so many spans on the calling thread. Returns how long they took, with what hands them to the
    /// collector and without what opens the round.
    fn round(&self, spans: u32) -> Duration;

    /// Waits until what the rounds made has left the queues. Never timed: the next round finds them empty, so that no
    /// one is measured while it drops.
    fn settle(&self) {}

    /// What became of the spans so far; `None` where nothing keeps them.
    fn account(&self) -> Option<Account> {
        None
    }
}

/// Spans made, and those that came out at the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Begun and ended.
    pub made: u64,
    /// Of those, in the collector's hands.
    pub arrived: u64,
}

/// How long so many calls take.
#[inline(always)]
pub fn time(calls: u32, call: impl FnMut(u32)) -> Duration {
    let begin = Instant::now();
    (0..calls).for_each(call);
    begin.elapsed()
}

/// Sleeps until it is true, for ten seconds at most. Whoever asks has an account that shows what did not come.
pub fn wait_until(arrived: impl Fn() -> bool) {
    let begin = Instant::now();
    while !arrived() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_micros(100));
    }
}
