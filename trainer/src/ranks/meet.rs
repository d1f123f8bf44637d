//! How ranks find each other: rank 0 tells by c10d's store where it listens, and the others come there.

use super::hub::Hub;
use super::inbox::Inbox;
use super::link::{Link, spawn};
use super::wire::{Up, halves};
use super::{Clock, LINGER, Launch, Patience, RanksError, beat_every};
use dflash_torch::{Rendezvous, Store};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The key under which rank 0 says where it listens.
const KEY: &str = "ranks";
/// How often somebody is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long somebody may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// A rank that looks for the others.
pub(super) struct Meeting<'a> {
    pub(super) launch: &'a Launch,
    pub(super) patience: Patience,
    pub(super) inbox: &'a Arc<Inbox>,
    pub(super) clock: &'a Clock,
    /// Somebody wants this process to stop.
    pub(super) stop: &'a dyn Fn() -> bool,
}

impl Meeting<'_> {
    fn problem(&self, problem: String) -> RanksError {
        RanksError::Join { rank: self.launch.rank, size: self.launch.size, problem }
    }

    /// A connection to the store, which this process may have to begin.
    pub(super) fn store(&self, server: bool) -> Result<Store, RanksError> {
        let Launch { host, port, prefix, .. } = self.launch;
        if !server {
            // c10d's own waiting cannot be ended by a signal.
            drop(self.reach(host, *port)?);
        }
        let (host, prefix) = (host.clone(), prefix.clone());
        let at = Rendezvous { host, port: *port, server, prefix, timeout: self.patience.join };
        Store::connect(&at).map_err(|error| self.problem(format!("MASTER_ADDR and MASTER_PORT: {error}")))
    }

    /// Rank 0: listens, and takes in who comes.
    pub(super) fn host(&self, store: &Store) -> Result<(Arc<Hub>, IpAddr), RanksError> {
        let failed = |error: io::Error| self.problem(format!("cannot listen for the other ranks: {error}"));
        // The address that the others know this host by; behind some routers it is not the host's own.
        let listener = TcpListener::bind((self.launch.host.as_str(), 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let secret = RandomState::new().build_hasher().finish();
        store.set(KEY, &format!("{} {secret}", address.port())).map_err(|error| self.problem(error.to_string()))?;
        let silence = self.patience.silence;
        let hub = Arc::new(Hub::new(self.launch.size, Arc::clone(self.inbox), Arc::clone(self.clock), silence));
        beating(&hub, silence).map_err(failed)?;
        let mut own = address.ip();
        let until = Instant::now() + self.patience.join;
        while !hub.missing().is_empty() {
            match listener.accept() {
                // A stranger, or one that died at once, is no reason to end.
                Ok((stream, _)) => own = take_in(stream, &hub, secret, silence).unwrap_or(own),
                Err(_) if (self.stop)() => return Err(self.given_up(&hub, "it was stopped".to_owned())),
                Err(_) if Instant::now() > until => {
                    let missing: Vec<_> = hub.missing().iter().map(usize::to_string).collect();
                    let (join, missing) = (self.patience.join, missing.join(", "));
                    return Err(self.given_up(&hub, format!("rank {missing} did not come within {join:?}")));
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
            if let Some(gone) = self.inbox.ended_within(Duration::ZERO) {
                return Err(gone.into());
            }
        }
        Ok((hub, own))
    }

    fn given_up(&self, hub: &Hub, problem: String) -> RanksError {
        hub.end(0, format!("failed: {problem}"));
        hub.linger(LINGER);
        self.problem(problem)
    }

    /// Any other rank: asks the store where to go, and goes there.
    pub(super) fn call(&self, store: &Store) -> Result<Link, RanksError> {
        let told = store.get(KEY).map_err(|error| self.problem(format!("rank 0 did not come: {error}")))?;
        let place = told.split_once(' ').and_then(|(port, secret)| Some((port.parse().ok()?, secret.parse().ok()?)));
        let (port, secret) =
            place.ok_or_else(|| self.problem(format!("the store says `{told}`, which is no place")))?;
        let stream = self.reach(&self.launch.host, port)?;
        let who = format!("process {} on {}", std::process::id(), dflash_profiler::hostname());
        let join = Up::Join { secret, rank: self.launch.rank, who };
        Link::begin(stream, &join, Arc::clone(self.inbox), Arc::clone(self.clock), self.patience)
            .map_err(|error| self.problem(format!("cannot talk to rank 0: {error}")))
    }

    /// Connects to a place where somebody will listen soon.
    fn reach(&self, host: &str, port: u16) -> Result<TcpStream, RanksError> {
        let until = Instant::now() + self.patience.join;
        loop {
            let tried = connect(host, port);
            let error = match tried {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if (self.stop)() {
                return Err(self.problem("it was stopped while it waited for rank 0".to_owned()));
            }
            if Instant::now() > until {
                let join = self.patience.join;
                let problem = format!(
                    "nobody answered at {host}:{port} within {join:?} ({error}); start rank 0, or set MASTER_ADDR and \
                     MASTER_PORT to where it is"
                );
                return Err(self.problem(problem));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, INTRODUCTION) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Takes in a rank that has come; the address by which it came here.
fn take_in(stream: TcpStream, hub: &Arc<Hub>, secret: u64, silence: Duration) -> Option<IpAddr> {
    let address = stream.local_addr().map(|at: SocketAddr| at.ip()).ok()?;
    let (out, mut receiver) = halves(stream.try_clone().ok()?, INTRODUCTION).ok()?;
    let Ok(Up::Join { secret: said, rank, who }) = receiver.receive() else { return None };
    if said != secret {
        return None;
    }
    stream.set_read_timeout(Some(silence)).ok()?;
    stream.set_write_timeout(Some(silence)).ok()?;
    let out = Arc::new(out);
    if !hub.enter(rank, who.clone(), Arc::clone(&out)) {
        hub.end(rank, format!("failed: two processes have this RANK; the other one is {who}"));
        return None;
    }
    let hub = Arc::clone(hub);
    spawn("dflash-rank-in", move || hub.serve(rank, &out, receiver)).ok()?;
    Some(address)
}

/// Gives signs of life as long as somebody has the hub.
fn beating(hub: &Arc<Hub>, silence: Duration) -> io::Result<()> {
    let hub = Arc::downgrade(hub);
    spawn("dflash-rank-out", move || {
        while let Some(hub) = hub.upgrade() {
            hub.beat();
            drop(hub);
            std::thread::sleep(beat_every(silence));
        }
    })
}
