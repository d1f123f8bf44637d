//! Several processes that train as one: how they find each other, agree, notice who goes, and compare their clocks.
//!
//! Rank 0 listens; the others find it by c10d's store, which is rank 0's own or torchrun's, and keep one connection to it.
//! Small things (settings, losses' weights, who stops) go over these connections, as lines of JSON; tensors go by c10d's
//! Gloo or by NCCL. A process that dies closes its connection, and so the others know at once which it was; one that hangs
//! gives no sign of life.

mod clock;
mod error;
mod facts;
mod hub;
mod inbox;
mod launch;
mod link;
mod meet;
#[cfg(test)]
mod tests;
mod wire;

pub use clock::ClockOffset;
pub use error::{Gone, RanksError};
pub(crate) use facts::{Facts, compare, facts};
pub use launch::{Launch, Patience};

use dflash_torch::{Gloo, Member, Store, TorchError};
use hub::Hub;
use inbox::Inbox;
use link::Link;
use meet::Meeting;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// This host's monotonic clock, nanoseconds.
pub(crate) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How long rank 0 waits at the end for the others to hear of it.
const LINGER: Duration = Duration::from_secs(10);

/// This process's end of a group of processes.
pub struct Ranks {
    launch: Launch,
    patience: Patience,
    inbox: Arc<Inbox>,
    round: Mutex<u64>,
    side: Side,
    store: Store,
    address: IpAddr,
}

enum Side {
    Hub(Arc<Hub>),
    Link(Link),
}

impl Ranks {
    /// Finds the other processes; returns once all are there (on other ranks than 0: once rank 0 is). `stop` ends the
    /// waiting.
    ///
    /// # Errors
    /// Somebody does not come in time, or `stop` said so.
    pub fn join(launch: &Launch, patience: Patience, stop: &dyn Fn() -> bool) -> Result<Self, RanksError> {
        Self::join_by(launch, patience, stop, Arc::new(dflash_profiler::monotonic_ns))
    }

    fn join_by(launch: &Launch, patience: Patience, stop: &dyn Fn() -> bool, clock: Clock) -> Result<Self, RanksError> {
        let inbox = Arc::<Inbox>::default();
        let meeting = Meeting { launch, patience, inbox: &inbox, clock: &clock, stop };
        let first = launch.rank == 0;
        let store = meeting.store(first && !launch.agent_store)?;
        let (side, address) = if first {
            let (hub, address) = meeting.host(&store)?;
            (Side::Hub(hub), address)
        } else {
            let link = meeting.call(&store)?;
            let address = link.address;
            (Side::Link(link), address)
        };
        Ok(Self { launch: launch.clone(), patience, inbox, round: Mutex::new(0), side, store, address })
    }

    /// Which this is, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.launch.rank
    }

    /// How many there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.launch.size
    }

    /// Everybody's values, in the ranks' order. All ranks call it equally often; it returns when all have.
    ///
    /// # Errors
    /// A rank has failed, or is gone.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, value: &T) -> Result<Vec<T>, Gone> {
        let misread = |error: serde_json::Error| {
            let cause = format!("failed: what was gathered cannot be read ({error}): report this");
            Gone { rank: self.launch.rank, who: String::new(), cause }
        };
        let value = serde_json::to_value(value).map_err(misread)?;
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.side {
            Side::Hub(hub) => hub.lay(0, *round, value),
            Side::Link(link) => link.lay(*round, value),
        }
        let values = self.inbox.wait(*round)?;
        *round += 1;
        values.into_iter().map(|value| serde_json::from_value(value).map_err(misread)).collect()
    }

    /// Refuses to go on where ranks differ in something.
    ///
    /// # Errors
    /// They do: the error names everything, with both values and both ranks. Or one is gone.
    pub(crate) fn agree(&self, own: &Facts) -> Result<(), RanksError> {
        compare(&self.gather(own)?)
    }

    /// Ends the training for all, because this rank cannot go on.
    pub fn fail(&self, cause: &str) {
        match &self.side {
            Side::Hub(hub) => hub.end(0, format!("failed: {cause}")),
            Side::Link(link) => link.fail(cause),
        }
    }

    /// The rank that has ended the training, if one has.
    #[must_use]
    pub fn ended(&self) -> Option<Gone> {
        self.inbox.ended_within(Duration::ZERO)
    }

    /// The rank that is to blame for an exchange that broke off: it may take a moment until that is known.
    #[must_use]
    pub fn cause(&self) -> Option<Gone> {
        self.inbox.ended_within(self.patience.silence + Duration::from_secs(5))
    }

    /// What sums tensors over the ranks, on CPUs. All ranks call it at the same time.
    ///
    /// # Errors
    /// A rank cannot be reached.
    pub fn gloo(&self) -> Result<Gloo, TorchError> {
        let (Launch { rank, size, .. }, timeout) = (&self.launch, self.patience.silence);
        let member = Member { rank: *rank, size: *size, address: self.address.to_string(), timeout };
        Gloo::join(&self.store, &member)
    }

    /// Tells how far this host's clock is from rank 0's: what was measured last, and every minute. Rank 0 hears nothing.
    pub fn watch_clock(&self, watch: impl Fn(ClockOffset) + Send + 'static) {
        if let Side::Link(link) = &self.side {
            link.watch_clock(Box::new(watch));
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail("it panicked");
        }
        match &self.side {
            Side::Hub(hub) => hub.linger(LINGER),
            Side::Link(link) => link.close(),
        }
    }
}

/// How often a sign of life is given where silence of a length is the end.
fn beat_every(silence: Duration) -> Duration {
    (silence / 10).min(Duration::from_secs(1))
}
