//! Tracy's client: zones without a call stack. A thread here takes the place of Tracy's viewer and throws away what it
//! gets: without one, the client would keep every zone, and its cost would be that of fresh memory.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tracy_client::{Client, span_location};

use crate::ours::Fault;
use crate::subject::{Subject, time};

/// Where the client listens: the first free one of these.
const PORTS: std::ops::Range<u16> = 8086..8106;
const PROTOCOL: u32 = 82;
const WELCOME: u8 = 1;
/// Bytes of the client's greeting before and behind its process number.
const GREETING: (usize, usize) = (48, 8 + 1 + 1 + 12 + 4 + 64 + 1024);

/// Recording, with a viewer that counts bytes and drops them.
pub struct Tracy {
    client: Client,
    bytes: Arc<AtomicU64>,
    viewer: TcpStream,
}

impl Drop for Tracy {
    /// Hangs up: at the program's end the client would wait for the viewer to have seen everything.
    fn drop(&mut self) {
        // Gone already: then nobody waits.
        let _ = self.viewer.shutdown(Shutdown::Both);
    }
}

impl Tracy {
    /// Starts the client, and connects the viewer to it.
    pub fn start() -> Result<Self, Fault> {
        let client = Client::start();
        let viewer = connect()?;
        let mut stream = viewer.try_clone()?;
        let bytes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&bytes);
        thread::Builder::new().name("bench-viewer".to_owned()).spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                count.fetch_add(read as u64, Ordering::Relaxed);
            }
        })?;
        Ok(Self { client, bytes, viewer })
    }

    /// Bytes that the viewer has got. They are compressed: how many zones they hold, only Tracy's own viewer knows.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Connects to this process's client; another process's has another number.
fn connect() -> Result<TcpStream, Fault> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        for port in PORTS {
            if let Ok(stream) = greet(port) {
                return Ok(stream);
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err("Tracy's client does not listen: is another one connected to it, or its port taken?".into())
}

fn greet(port: u16) -> Result<TcpStream, Fault> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"TracyPrf")?;
    stream.write_all(&PROTOCOL.to_le_bytes())?;
    let mut status = [0];
    stream.read_exact(&mut status)?;
    if status != [WELCOME] {
        return Err("refused".into());
    }
    let mut greeting = vec![0; GREETING.0 + 8 + GREETING.1];
    stream.read_exact(&mut greeting)?;
    if greeting[GREETING.0..GREETING.0 + 8] != u64::from(std::process::id()).to_le_bytes() {
        return Err("another process's".into());
    }
    stream.set_read_timeout(None)?;
    Ok(stream)
}

impl Subject for Tracy {
    fn name(&self) -> &'static str {
        "tracy-client"
    }

    fn round(&self, spans: u32) -> Duration {
        time(spans, |i| {
            let _span = self.client.clone().span(span_location!("bench.span"), 0);
            black_box(i);
        })
    }

    fn settle(&self) {
        // Its thread looks every 10 ms at most; a round fills a thirtieth of one of its blocks.
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::Tracy;
    use crate::subject::{Subject, wait_until};

    /// Zones that are alike compress to some 0.8 bytes; what the client sends of itself is a few bytes a second.
    #[test]
    fn zones_reach_the_viewer() {
        const ZONES: u32 = 20_000;
        let tracy = Tracy::start().unwrap();
        let before = tracy.bytes();
        tracy.round(ZONES);
        wait_until(|| tracy.bytes() - before > u64::from(ZONES) / 4);
        assert!(tracy.bytes() - before > u64::from(ZONES) / 4, "{} bytes", tracy.bytes() - before);
    }
}
