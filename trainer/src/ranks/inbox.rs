//! What a rank has been told: the parts that were gathered last, and whether another rank ended the training.

use super::{Gone, LOOK_EVERY};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Inbox {
    got: Mutex<Got>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Got {
    all: Option<(u64, Vec<String>)>,
    ended: Option<Gone>,
}

impl Inbox {
    pub(super) fn all(&self, round: u64, values: Vec<String>) {
        self.lock().all = Some((round, values));
        self.changed.notify_all();
    }

    /// The first to end it is the cause.
    pub(super) fn end(&self, gone: Gone) {
        self.lock().ended.get_or_insert(gone);
        self.changed.notify_all();
    }

    /// Waits until all parts of a round are there. `Ok(None)`: `stop` did not want to wait any longer.
    pub(super) fn wait(&self, round: u64, stop: &dyn Fn() -> bool) -> Result<Option<Vec<String>>, Gone> {
        let mut got = self.lock();
        loop {
            if let Some((_, values)) = got.all.take_if(|(number, _)| *number == round) {
                return Ok(Some(values));
            }
            if let Some(gone) = &got.ended {
                return Err(gone.clone());
            }
            if stop() {
                return Ok(None);
            }
            got = self.changed.wait_timeout(got, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Who ended it, waiting so long for somebody to do so.
    pub(super) fn ended_within(&self, time: Duration) -> Option<Gone> {
        let until = Instant::now() + time;
        let mut got = self.lock();
        while got.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            got = self.changed.wait_timeout(got, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        got.ended.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Got> {
        // Between two statements it is whole.
        self.got.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
