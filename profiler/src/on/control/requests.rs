//! What a user asks of the training itself: the loop looks at it between two steps.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::super::hub::lock;

/// Requests to the training. Clones are handles of the same; looking costs one relaxed load.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Somebody has a handle, and so may look.
    handed_out: AtomicBool,
    stop: AtomicBool,
    checkpoint: AtomicBool,
    account: Mutex<Account>,
    changed: Condvar,
}

/// How many checkpoints were taken up and how many of those ended.
#[derive(Debug, Default)]
struct Account {
    taken: u64,
    ended: u64,
    outcome: Option<Result<PathBuf, String>>,
    closed: bool,
}

/// How far a checkpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The training has not looked yet.
    Asked,
    /// It is being written.
    Taken,
    /// It is done, or failed.
    Ended(Result<PathBuf, String>),
}

impl Requests {
    /// Whether a checkpoint is wanted; true once a request. Say what became of it with
    /// [`checkpoint_written`](Self::checkpoint_written).
    #[must_use]
    pub fn take_checkpoint(&self) -> bool {
        if !self.0.checkpoint.load(Ordering::Relaxed) || !self.0.checkpoint.swap(false, Ordering::AcqRel) {
            return false;
        }
        lock(&self.0.account).taken += 1;
        self.0.changed.notify_all();
        true
    }

    /// Says where the checkpoint that was taken up lies, or why there is none.
    pub fn checkpoint_written(&self, outcome: Result<PathBuf, String>) {
        let mut account = lock(&self.0.account);
        account.ended = account.taken;
        account.outcome = Some(outcome);
        self.0.changed.notify_all();
    }

    /// Whether the training shall end, with what has been learnt.
    #[must_use]
    pub fn stop(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// The handle for the training.
    pub(super) fn hand_out(&self) -> Self {
        self.0.handed_out.store(true, Ordering::Relaxed);
        self.clone()
    }

    pub(super) fn are_taken(&self) -> bool {
        self.0.handed_out.load(Ordering::Relaxed)
    }

    pub(super) fn ask_stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Asks for a checkpoint. Returns a ticket for [`wait`](Self::wait): several who ask at once get the same one.
    pub(super) fn ask_checkpoint(&self) -> u64 {
        let ticket = lock(&self.0.account).taken + 1;
        self.0.checkpoint.store(true, Ordering::Release);
        ticket
    }

    /// Waits at most so long for a checkpoint to be written.
    pub(super) fn wait(&self, ticket: u64, most: Duration) -> Progress {
        let pending = |account: &mut Account| account.ended < ticket && !account.closed;
        let waited = self.0.changed.wait_timeout_while(lock(&self.0.account), most, pending);
        let (account, _) = waited.unwrap_or_else(|e| e.into_inner());
        if account.ended >= ticket {
            // A later one overtook this: then it is as good.
            let none = || Err("the training did not say what became of it".to_owned());
            return Progress::Ended(account.outcome.clone().unwrap_or_else(none));
        }
        if account.closed {
            return Progress::Ended(Err("the training ended before it wrote one".to_owned()));
        }
        if account.taken >= ticket { Progress::Taken } else { Progress::Asked }
    }

    /// The training is over: nobody waits any more.
    pub(super) fn close(&self) {
        lock(&self.0.account).closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Progress, Requests};

    #[test]
    fn a_checkpoint_is_taken_once_and_answered_to_all_who_asked() {
        let requests = Requests::default();
        let look = |ticket| requests.wait(ticket, Duration::ZERO);
        assert!(!requests.take_checkpoint());
        let tickets = [requests.ask_checkpoint(), requests.ask_checkpoint()];
        assert_eq!(tickets.map(look), [Progress::Asked, Progress::Asked]);
        assert!(requests.take_checkpoint());
        assert!(!requests.take_checkpoint());
        let late = requests.ask_checkpoint();
        assert_eq!(tickets.map(look), [Progress::Taken, Progress::Taken]);
        requests.checkpoint_written(Ok("a".into()));
        assert_eq!(tickets.map(look), [Progress::Ended(Ok("a".into())), Progress::Ended(Ok("a".into()))]);
        assert_eq!(look(late), Progress::Asked, "what was asked while one was written is a new one");
        requests.close();
        assert!(matches!(look(late), Progress::Ended(Err(_))));
    }

    #[test]
    fn a_stop_stays() {
        let requests = Requests::default();
        let handle = requests.hand_out();
        assert!(requests.are_taken() && !handle.stop());
        requests.ask_stop();
        assert!(handle.stop() && handle.stop());
    }
}
