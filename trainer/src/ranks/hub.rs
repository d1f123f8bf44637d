//! Rank 0's side: the other ranks' connections end here. It passes parts around, answers what the time is, and notices who
//! goes.

use super::inbox::Inbox;
use super::wire::{Down, Receiver, Sender, Up, lost};
use super::{Clock, Gone, who};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Hub {
    /// Rank 0's own.
    inbox: Arc<Inbox>,
    state: Mutex<State>,
    /// A member has come or gone.
    changed: Condvar,
    clock: Clock,
    silence: Duration,
    /// Rank 0's process and host.
    who: String,
}

struct State {
    round: u64,
    parts: Vec<Option<String>>,
    /// Rank 0 is none. Behind the ranks: those that were not taken in, which only hear why.
    members: Vec<Option<Member>>,
    ended: Option<Gone>,
}

struct Member {
    who: String,
    out: Arc<Sender>,
    /// It has said goodbye, or is gone.
    left: bool,
}

impl Hub {
    pub(super) fn new(size: usize, inbox: Arc<Inbox>, clock: Clock, silence: Duration) -> Self {
        let (parts, members) = (vec![None; size], (0..size).map(|_| None).collect());
        let state = Mutex::new(State { round: 0, parts, members, ended: None });
        Self { inbox, state, changed: Condvar::new(), clock, silence, who: who() }
    }

    /// Takes a rank in; false: there is one of that number already.
    pub(super) fn enter(&self, rank: usize, who: String, out: Arc<Sender>) -> bool {
        let mut state = self.lock();
        if let Some(gone) = &state.ended {
            // Too late; at least it is told why.
            let _ = out.send(&Down::Ended(gone.clone()));
        }
        match state.members.get_mut(rank) {
            Some(place @ None) if rank > 0 => *place = Some(Member { who, out, left: false }),
            _ => return false,
        }
        true
    }

    /// Ends the training because of a process that has another one's number, which is told so as well: its place.
    pub(super) fn refuse(&self, rank: usize, who: String, out: Arc<Sender>) -> usize {
        let cause = format!("failed: two processes have this RANK; the other one is {who}");
        let mut state = self.lock();
        state.members.push(Some(Member { who, out, left: false }));
        let place = state.members.len() - 1;
        drop(state);
        self.end(rank, cause);
        place
    }

    /// Waits until a process goes that was not taken in.
    pub(super) fn see_off(&self, place: usize, mut receiver: Receiver) {
        while receiver.receive().is_ok_and(|said| !matches!(said, Up::Bye)) {}
        self.left(place);
    }

    /// Ranks that have not come yet.
    pub(super) fn missing(&self) -> Vec<usize> {
        let state = self.lock();
        (1..state.parts.len()).filter(|&rank| state.members[rank].is_none()).collect()
    }

    /// Listens to a rank until it goes.
    pub(super) fn serve(&self, rank: usize, out: &Sender, mut receiver: Receiver) {
        loop {
            match receiver.receive() {
                Ok(Up::Part { round, value }) => self.lay(rank, round, value),
                Ok(Up::Ping { number }) => {
                    let at_ns = (self.clock)();
                    // If it is gone, the next reading says so.
                    let _ = out.send(&Down::Pong { number, at_ns });
                }
                Ok(Up::Beat | Up::Join { .. }) => {}
                Ok(Up::Failed { cause }) => self.end(rank, format!("failed: {cause}")),
                Ok(Up::Bye) => return self.left(rank),
                Err(error) => {
                    self.end(rank, lost(&error, self.silence));
                    return self.left(rank);
                }
            }
        }
    }

    /// A rank's part; the last one makes all.
    pub(super) fn lay(&self, rank: usize, round: u64, value: String) {
        let mut state = self.lock();
        if round != state.round || state.parts[rank].is_some() {
            let problem = format!("is at exchange {round}, the others at {}: report this", state.round);
            drop(state);
            return self.end(rank, problem);
        }
        state.parts[rank] = Some(value);
        if let Some(early) = state.who_left() {
            drop(state);
            return self.end(early, LEFT_EARLY.to_owned());
        }
        if state.parts.iter().any(Option::is_none) {
            return;
        }
        let values: Vec<String> = state.parts.iter_mut().filter_map(Option::take).collect();
        state.round += 1;
        state.tell(&Down::All { round, values: values.clone() });
        self.inbox.all(round, values);
    }

    /// A rank ends the training for all; the first one counts.
    pub(super) fn end(&self, rank: usize, cause: String) {
        let mut state = self.lock();
        if state.ended.is_none() {
            let who = match state.members.get(rank) {
                Some(Some(member)) => member.who.clone(),
                _ if rank == 0 => self.who.clone(),
                _ => String::new(),
            };
            let gone = Gone { rank, who, cause };
            state.ended = Some(gone.clone());
            state.tell(&Down::Ended(gone.clone()));
            self.inbox.end(gone);
        }
    }

    /// A sign of life for all.
    pub(super) fn beat(&self) {
        self.lock().tell(&Down::Beat);
    }

    /// Waits until all have gone, so long at most: what was sent to them last must not be lost with the connection.
    pub(super) fn linger(&self, most: Duration) {
        let until = Instant::now() + most;
        let mut state = self.lock();
        while state.members.iter().flatten().any(|member| !member.left) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all connections without a word, as when this process is killed.
    #[cfg(test)]
    pub(super) fn cut(&self) {
        self.lock().members.iter().flatten().for_each(|member| member.out.close());
    }

    fn left(&self, rank: usize) {
        let mut state = self.lock();
        if let Some(Some(member)) = state.members.get_mut(rank) {
            member.left = true;
        }
        let awaited = state.parts.iter().any(Option::is_some);
        drop(state);
        if awaited {
            self.end(rank, LEFT_EARLY.to_owned());
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Between two statements it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a rank that the others still wait for.
const LEFT_EARLY: &str = "has ended before the others";

impl State {
    /// A rank that has said goodbye.
    fn who_left(&self) -> Option<usize> {
        self.members.iter().position(|member| member.as_ref().is_some_and(|member| member.left))
    }

    /// To all ranks but 0. Who does not listen any more is noticed by the thread that reads from it.
    fn tell(&self, message: &Down) {
        for member in self.members.iter().flatten().filter(|member| !member.left) {
            let _ = member.out.send(message);
        }
    }
}
