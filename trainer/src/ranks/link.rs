//! The side of every other rank: one connection to rank 0, a thread that listens to it, and one that gives signs of life and
//! asks for the time.

use super::clock::{Answer, ClockOffset, Questions};
use super::inbox::Inbox;
use super::wire::{Down, Receiver, Sender, Up, halves, lost};
use super::{Clock, Gone, Patience, beat_every};
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender as Answers};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Gets every measurement.
pub(super) type Watch = Box<dyn Fn(ClockOffset) + Send>;

/// The measurement that was made last, and who is told of the next.
#[derive(Default)]
pub(super) struct Offsets {
    pub(super) last: Option<ClockOffset>,
    pub(super) watch: Option<Watch>,
}

pub(super) struct Link {
    out: Arc<Sender>,
    closed: Arc<AtomicBool>,
    offsets: Arc<Mutex<Offsets>>,
    /// By which rank 0 reaches this host.
    pub(super) address: IpAddr,
}

impl Link {
    /// Introduces a rank on a connection to rank 0; `first` is that one's process and host.
    pub(super) fn begin(
        stream: TcpStream,
        join: &Up,
        first: String,
        inbox: Arc<Inbox>,
        clock: Clock,
        patience: Patience,
    ) -> io::Result<Self> {
        let address = stream.local_addr()?.ip().to_canonical();
        let (out, receiver) = halves(stream, patience.silence)?;
        let out = Arc::new(out);
        out.send(join)?;
        let (answers, answered) = mpsc::channel();
        let (closed, offsets) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Offsets>>::default());
        let own = Arc::clone(&clock);
        spawn("dflash-rank-in", move || {
            let error = listen(receiver, &inbox, &answers, &own);
            inbox.end(Gone { rank: 0, who: first, cause: lost(&error, patience.silence) });
        })?;
        let link = Self { out, closed, offsets, address };
        let (out, closed, offsets) = (Arc::clone(&link.out), Arc::clone(&link.closed), Arc::clone(&link.offsets));
        let (mut compared, mut questions): (Option<Instant>, _) = (None, Questions::new(answered));
        spawn("dflash-rank-out", move || {
            while !closed.load(Ordering::Relaxed) && out.send(&Up::Beat).is_ok() {
                if compared.is_none_or(|at| at.elapsed() >= patience.compare) {
                    compared = Some(Instant::now());
                    if let Some(offset) = questions.measure(&clock, |number| out.send(&Up::Ping { number })) {
                        note(&offsets, offset);
                    }
                }
                std::thread::sleep(beat_every(patience.silence));
            }
        })?;
        Ok(link)
    }

    /// Sends a part to rank 0. That rank 0 is gone says the thread that listens.
    pub(super) fn lay(&self, round: u64, value: String) {
        let _ = self.out.send(&Up::Part { round, value });
    }

    pub(super) fn fail(&self, cause: &str) {
        let _ = self.out.send(&Up::Failed { cause: cause.to_owned() });
    }

    /// Tells of the last measurement, and of each that follows.
    pub(super) fn watch_clock(&self, watch: Watch) {
        let mut offsets = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offset) = offsets.last {
            watch(offset);
        }
        offsets.watch = Some(watch);
    }

    /// Says goodbye.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = self.out.send(&Up::Bye);
        self.out.close();
    }
}

fn note(offsets: &Mutex<Offsets>, offset: ClockOffset) {
    let mut offsets = offsets.lock().unwrap_or_else(PoisonError::into_inner);
    offsets.last = Some(offset);
    if let Some(watch) = &offsets.watch {
        watch(offset);
    }
}

/// Takes in what rank 0 says; why it says no more.
fn listen(mut receiver: Receiver, inbox: &Inbox, answers: &Answers<Answer>, clock: &Clock) -> io::Error {
    loop {
        match receiver.receive() {
            Ok(Down::All { round, values }) => inbox.all(round, values),
            Ok(Down::Pong { number, at_ns }) => {
                // Nobody asks any more when the other thread has ended.
                let _ = answers.send(Answer { number, at_ns, came_ns: clock() });
            }
            Ok(Down::Beat) => {}
            Ok(Down::Ended(gone)) => inbox.end(gone),
            Err(error) => return error,
        }
    }
}

/// A thread that ends with the connection.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}
