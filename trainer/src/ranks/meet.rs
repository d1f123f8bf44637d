//! How ranks find each other: rank 0 tells by c10d's store where it listens, and the others come there.

use super::hub::Hub;
use super::inbox::Inbox;
use super::link::{Link, spawn};
use super::wire::{Up, halves};
use super::{Clock, LINGER, LOOK_EVERY, Launch, Patience, RanksError, beat_every, who};
use dflash_torch::{Rendezvous, Store, TorchError};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The key under which rank 0 says where it listens.
const KEY: &str = "ranks";
/// The key under which it says, once all have come, by which address it is reached.
pub(super) const ADDRESS: &str = "address";
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
        // MASTER_ADDR need not mean to this host what it means to the others (`127.0.1.1 node1` in /etc/hosts). Who comes
        // by whatever address must know the secret.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let secret = RandomState::new().build_hasher().finish();
        let of_store = |error: TorchError| self.problem(error.to_string());
        store.set(KEY, &format!("{} {secret} {}", address.port(), who())).map_err(of_store)?;
        let silence = self.patience.silence;
        let hub = Arc::new(Hub::new(self.launch.size, Arc::clone(self.inbox), Arc::clone(self.clock), silence));
        beating(&hub, silence).map_err(failed)?;
        let ways = self.take_in_all(&listener, &hub, secret)?;
        let own = best(ways).unwrap_or(Ipv4Addr::LOCALHOST.into());
        store.set(ADDRESS, &own.to_string()).map_err(of_store)?;
        Ok((hub, own))
    }

    /// Waits until all have come; the addresses by which they came.
    fn take_in_all(&self, listener: &TcpListener, hub: &Arc<Hub>, secret: u64) -> Result<Vec<IpAddr>, RanksError> {
        let (way, ways) = mpsc::channel();
        let until = Instant::now() + self.patience.join;
        loop {
            if let Some(gone) = self.inbox.ended_within(Duration::ZERO) {
                // It must not be lost with the connections.
                hub.linger(LINGER);
                return Err(gone.into());
            }
            let missing: Vec<_> = hub.missing().iter().map(usize::to_string).collect();
            if missing.is_empty() {
                return Ok(ways.try_iter().collect());
            }
            if (self.stop)() {
                return Err(self.given_up(hub, "it was stopped".to_owned()));
            }
            if Instant::now() > until {
                let (join, missing) = (self.patience.join, missing.join(", "));
                return Err(self.given_up(hub, format!("rank {missing} did not come within {join:?}")));
            }
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(LOOK_EVERY);
                continue;
            };
            // A stranger, or one that died at once, is no reason to end, nor to keep the others waiting.
            let (hub, way, silence) = (Arc::clone(hub), way.clone(), self.patience.silence);
            // Where there is no thread for it, it is as one that did not come.
            let _ = spawn("dflash-rank-in", move || {
                take_in(stream, &hub, secret, silence, &way);
            });
        }
    }

    fn given_up(&self, hub: &Hub, problem: String) -> RanksError {
        hub.end(0, format!("failed: {problem}"));
        hub.linger(LINGER);
        self.problem(problem)
    }

    /// Any other rank: asks the store where to go, and goes there.
    pub(super) fn call(&self, store: &Store) -> Result<Link, RanksError> {
        let told = self.told(store)?;
        let (port, secret, first) =
            place(&told).ok_or_else(|| self.problem(format!("the store says `{told}`, which is no place")))?;
        let stream = self.reach(&self.launch.host, port)?;
        let join = Up::Join { secret, rank: self.launch.rank, who: who() };
        Link::begin(stream, &join, first, Arc::clone(self.inbox), Arc::clone(self.clock), self.patience)
            .map_err(|error| self.problem(format!("cannot talk to rank 0: {error}")))
    }

    /// What rank 0 says in the store. torchrun's is there long before it does, and c10d's own waiting hears no signal.
    fn told(&self, store: &Store) -> Result<String, RanksError> {
        let lost = |error: TorchError| self.problem(format!("rank 0 did not come: {error}"));
        let until = Instant::now() + self.patience.join;
        while !store.has(KEY).map_err(lost)? {
            self.go_on()?;
            if Instant::now() > until {
                return Err(self.problem(format!("rank 0 did not come within {:?}", self.patience.join)));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        store.get(KEY).map_err(lost)
    }

    fn go_on(&self) -> Result<(), RanksError> {
        if (self.stop)() { Err(self.problem("it was stopped while it waited for rank 0".to_owned())) } else { Ok(()) }
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
            self.go_on()?;
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

/// Where rank 0 listens, its secret, its process and host.
fn place(told: &str) -> Option<(u16, u64, String)> {
    let mut words = told.splitn(3, ' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// Of the addresses by which others came here, one that is good on all hosts, if there is any.
fn best(ways: Vec<IpAddr>) -> Option<IpAddr> {
    ways.iter().copied().find(|way| !way.is_loopback()).or(ways.first().copied())
}

/// Takes in a rank that has come, and listens to it until it goes; `way` is told the address by which it came here.
fn take_in(stream: TcpStream, hub: &Hub, secret: u64, silence: Duration, way: &mpsc::Sender<IpAddr>) -> Option<()> {
    let address = stream.local_addr().ok()?.ip().to_canonical();
    let (out, mut receiver) = halves(stream.try_clone().ok()?, INTRODUCTION).ok()?;
    let Ok(Up::Join { secret: said, rank, who }) = receiver.receive() else { return None };
    if said != secret {
        return None;
    }
    stream.set_read_timeout(Some(silence)).ok()?;
    stream.set_write_timeout(Some(silence)).ok()?;
    let out = Arc::new(out);
    // Before it counts: nobody asks for it after the last one.
    let _ = way.send(address);
    if hub.enter(rank, who.clone(), Arc::clone(&out)) {
        hub.serve(rank, &out, receiver);
    } else {
        let place = hub.refuse(rank, who, out);
        hub.see_off(place, receiver);
    }
    Some(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_good_on_all_hosts_is_preferred() {
        let ways =
            |ways: &[&str]| best(ways.iter().map(|way| way.parse().unwrap()).collect()).map(|way| way.to_string());
        assert_eq!(ways(&["127.0.1.1", "10.0.0.7", "::1"]).as_deref(), Some("10.0.0.7"));
        assert_eq!(ways(&["127.0.1.1", "127.0.0.1"]).as_deref(), Some("127.0.1.1"));
        assert_eq!(ways(&[]), None);
    }
}
