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
pub(crate) mod tests;
mod wire;

pub use clock::ClockOffset;
pub use error::{Gone, RanksError};
pub(crate) use facts::{Facts, compare, facts};
pub use launch::{Launch, Patience};

use dflash_torch::{Gloo, Member, Store, TorchError};
use hub::Hub;
use inbox::Inbox;
use link::Link;
use meet::{ADDRESS, Meeting};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// This host's monotonic clock, nanoseconds.
pub(crate) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How long rank 0 waits at the end for the others to hear of it.
const LINGER: Duration = Duration::from_secs(10);

/// How often somebody is looked for, and asked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// This process, for the others.
fn who() -> String {
    format!("process {} on {}", std::process::id(), dflash_profiler::hostname())
}

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
        // Nobody stops: there are all.
        self.gathered(value, &|| false).map(Option::unwrap_or_default)
    }

    /// As [`gather`](Self::gather), before there is a training that could be stopped after a step: `stop` ends the waiting.
    ///
    /// # Errors
    /// A rank has failed, or is gone; `stop` said so, of which the others are told.
    pub fn gather_unless<T>(&self, value: &T, stop: &dyn Fn() -> bool) -> Result<Vec<T>, RanksError>
    where
        T: Serialize + DeserializeOwned,
    {
        self.gathered(value, stop)?.ok_or_else(|| {
            self.fail("it was stopped");
            let problem = "it was stopped while it waited for the other ranks".to_owned();
            RanksError::Join { rank: self.launch.rank, size: self.launch.size, problem }
        })
    }

    /// `None`: it was stopped. All ranks read the same texts, their own as well: a number that was written and read is not
    /// always the same to its last bit.
    fn gathered<T>(&self, value: &T, stop: &dyn Fn() -> bool) -> Result<Option<Vec<T>>, Gone>
    where
        T: Serialize + DeserializeOwned,
    {
        let misread = |error: serde_json::Error| {
            let cause = format!("failed: what was gathered cannot be read ({error}): report this");
            Gone { rank: self.launch.rank, who: who(), cause }
        };
        let value = serde_json::to_string(value).map_err(misread)?;
        // Whoever knows of the end lays nothing: with what the others had laid before, the round could still become whole.
        if let Some(gone) = self.ended() {
            return Err(gone);
        }
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.side {
            Side::Hub(hub) => hub.lay(0, *round, value),
            Side::Link(link) => link.lay(*round, value),
        }
        let Some(values) = self.inbox.wait(*round, stop)? else { return Ok(None) };
        *round += 1;
        values.iter().map(|value| serde_json::from_str(value).map_err(misread)).collect::<Result<_, _>>().map(Some)
    }

    /// Refuses to go on where ranks differ in something.
    ///
    /// # Errors
    /// They do: the error names everything, with both values and both ranks. Or one is gone, or `stop` said so.
    pub(crate) fn agree(&self, own: &Facts, stop: &dyn Fn() -> bool) -> Result<(), RanksError> {
        compare(&self.gather_unless(own, stop)?)
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
        // Who reaches rank 0 by an address that is good on one host only is on its host.
        let address = if self.address.is_loopback() { self.store.get(ADDRESS)? } else { self.address.to_string() };
        let member = Member { rank: *rank, size: *size, address, timeout };
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
