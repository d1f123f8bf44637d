//! The thread `dflash-control`: accepts clients and finds each a seat.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dflash_timeline::control::Answer;

use super::super::hub::lock;
use super::super::patience::Patience;
use super::super::threads::Role;
use super::pace::Pace;
use super::reply::Reply;
use super::{Control, place, visit};

/// Clients that may be served at once.
const SEATS: usize = 32;
/// How long the end of the recording waits for answers that are under way.
const HEARD_OUT: Duration = Duration::from_secs(2);
/// A visitor's stack: it holds a line of a request and calls nothing deep.
const STACK: usize = 512 << 10;

/// A socket that is being served.
#[derive(Debug)]
pub(super) struct Server {
    path: PathBuf,
    /// Device and inode of the socket: what lies at the path later may be another's.
    identity: Option<(u64, u64)>,
    /// The listening socket again, to end it.
    ear: UnixStream,
    desk: Arc<Desk>,
    thread: JoinHandle<()>,
}

/// What the accepting thread and the visitors share.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub pace: Pace,
    seats: Mutex<Vec<Seat>>,
}

/// One client's.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub stream: Arc<UnixStream>,
    /// Whether a request is being answered; else the client is silent.
    pub busy: Arc<AtomicBool>,
}

impl Server {
    /// Makes the socket, notes its path in run.json and begins to accept.
    pub(super) fn open(control: &Arc<Control>) -> Result<Self, String> {
        let (listener, path) = place::bind(control.run.path(), control.rank)?;
        let server = Self::serve(control, listener, path.clone());
        if server.is_err() {
            // Nobody would answer at it.
            let _ = fs::remove_file(&path);
        }
        server
    }

    fn serve(control: &Arc<Control>, listener: UnixListener, path: PathBuf) -> Result<Self, String> {
        let says = |error: io::Error| error.to_string();
        let identity = fs::symlink_metadata(&path).ok().map(|found| (found.dev(), found.ino()));
        let ear = UnixStream::from(OwnedFd::from(listener.try_clone().map_err(says)?));
        if control.rank == 0 {
            let told = control.run.amend_manifest(|manifest| manifest.control = Some(path.clone()));
            told.map_err(|error| error.to_string())?;
        }
        let (desk, control) = (Arc::new(Desk::default()), Arc::clone(control));
        let work = {
            let desk = Arc::clone(&desk);
            move || {
                let _present = control.hub.threads.enter(Role::Control);
                accept(&listener, &desk, &control);
            }
        };
        let thread = thread::Builder::new().name("dflash-control".into()).spawn(work).map_err(says)?;
        Ok(Self { path, identity, ear, desk, thread })
    }

    /// Removes the socket, and lets nobody in any more. `Control::closing` is set by now.
    pub(super) fn close(self) -> Leaving {
        let here = fs::symlink_metadata(&self.path).ok().map(|found| (found.dev(), found.ino()));
        if here.is_some() && here == self.identity {
            // That it cannot be removed harms nobody: the next attempt finds that nobody answers.
            let _ = fs::remove_file(&self.path);
        }
        // On a listening socket this ends `accept`.
        let _ = self.ear.shutdown(Shutdown::Both);
        // A visitor may be the one who ends the recording, this thread never is.
        let _ = self.thread.join();
        let seats = std::mem::take(&mut *lock(&self.desk.seats));
        let (answered, silent) = seats.into_iter().partition(|seat| seat.busy.load(Ordering::Relaxed));
        let silent: Vec<Seat> = silent;
        silent.iter().for_each(Seat::clear);
        Leaving(answered)
    }
}

/// Visitors that are being answered while the recording ends, perhaps because one of them asked for that.
#[derive(Debug)]
pub(super) struct Leaving(Vec<Seat>);

impl Leaving {
    /// Lets them hear their answers, for a moment, and sends them away. They hold nothing of the recording.
    pub(super) fn hear_out(self) {
        let mut patience = Patience::new(HEARD_OUT);
        let waits = |seat: &Seat| seat.busy.load(Ordering::Acquire) && !visit::is_visitor();
        while self.0.iter().any(waits) && !patience.is_over() {
            thread::sleep(Duration::from_millis(1));
        }
        self.0.iter().for_each(Seat::clear);
    }
}

fn accept(listener: &UnixListener, desk: &Arc<Desk>, control: &Arc<Control>) {
    loop {
        let accepted = listener.accept();
        if control.is_closing() {
            return;
        }
        match accepted {
            Ok((stream, _)) => desk.welcome(stream, control),
            // Too many open files, or a client that was gone at once.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

impl Desk {
    fn welcome(self: &Arc<Self>, stream: UnixStream, control: &Arc<Control>) {
        self.pace.step();
        let stream = Arc::new(stream);
        let refuse = |why: &str| {
            // It need not hear it.
            let _ = stream.set_nonblocking(true);
            let _ = Reply::new(&stream).send(&Answer::Error(why.to_owned()));
        };
        if !dflash_sys::peer_uid(&stream).is_ok_and(|uid| uid == dflash_sys::effective_uid()) {
            return refuse("only the user who started the run may control it");
        }
        if !self.make_room() {
            return refuse("the run is answering as many requests as it can; try again in a moment");
        }
        let seat = Seat { stream: Arc::clone(&stream), busy: Arc::new(AtomicBool::new(false)) };
        lock(&self.seats).push(seat.clone());
        let (desk, control) = (Arc::clone(self), Arc::clone(control));
        let work = {
            let seat = seat.clone();
            move || {
                let _present = control.hub.threads.enter(Role::Control);
                visit::talk(&seat, &desk, &control);
                desk.leave(&seat);
                control.visits_cpu_ns.fetch_add(dflash_sys::thread_cpu_ns(), Ordering::Relaxed);
            }
        };
        if thread::Builder::new().name("dflash-client".into()).stack_size(STACK).spawn(work).is_err() {
            refuse("the system gives no thread");
            self.leave(&seat);
        }
    }

    /// Whether there is a seat: the client that has been silent longest gives up its own.
    fn make_room(&self) -> bool {
        let mut seats = lock(&self.seats);
        if seats.len() < SEATS {
            return true;
        }
        let silent = seats.iter().position(|seat| !seat.busy.load(Ordering::Relaxed));
        silent.map(|place| seats.remove(place).clear()).is_some()
    }

    fn leave(&self, seat: &Seat) {
        lock(&self.seats).retain(|other| !Arc::ptr_eq(&other.stream, &seat.stream));
        seat.busy.store(false, Ordering::Release);
        seat.clear();
    }
}

impl Seat {
    /// Ends the conversation.
    fn clear(&self) {
        // That it has ended already is as good.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
