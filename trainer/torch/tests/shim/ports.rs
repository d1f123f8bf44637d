//! Ports of this host that nobody has, for tests side by side.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those that Linux gives to whoever asks for any (from 32768 on): until rank 0 listens, no connection and no other
/// test's listener is given it.
const FIRST: u32 = 12_000;
const PORTS: u32 = 20_000;

/// Each is given once by this process; others begin somewhere else.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let begin = process::id().wrapping_mul(37);
    let next = || (FIRST + begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..PORTS).map(|_| next()).find(is_free).expect("a port is free")
}
