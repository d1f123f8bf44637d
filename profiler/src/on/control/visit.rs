//! One client's conversation, on a thread `dflash-client` of its own: a line is a request.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dflash_timeline::control::{Answer, LONGEST_REQUEST, Request};

use super::Control;
use super::answers::answer;
use super::reply::Reply;
use super::server::{Desk, Seat};

/// How long a client may be silent between two requests.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a request may take to come, from its first byte on.
const SLOWEST: Duration = Duration::from_secs(5);

thread_local! {
    static VISITS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread talks with a client: one that drops the last handle of a recording ends it.
pub(super) fn is_visitor() -> bool {
    VISITS.try_with(Cell::get).unwrap_or(false)
}

/// Answers until the client leaves, is silent for too long or sends what is no request.
pub(super) fn talk(seat: &Seat, desk: &Desk, control: &Control) {
    let stream = &*seat.stream;
    VISITS.set(true);
    let mut read = Vec::new();
    while !control.is_closing() {
        let request = match next_line(stream, &mut read) {
            Ok(line) => {
                seat.busy.store(true, Ordering::Relaxed);
                desk.pace.step();
                Request::parse(&line)
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(error.to_string()),
            // It has left, or hangs.
            Err(_) => return,
        };
        let mut reply = Reply::new(stream);
        let answered = match request {
            Ok(request) => answer(control, &request, &mut reply),
            Err(problem) => {
                // What follows garbage is garbage.
                let _ = reply.send(&Answer::Error(problem));
                return;
            }
        };
        if answered.is_err() {
            return;
        }
        seat.busy.store(false, Ordering::Release);
    }
}

/// The next line, without its end. `read` keeps what came behind it.
fn next_line(stream: &UnixStream, read: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut seen = 0;
    let mut end = (!read.is_empty()).then(|| Instant::now() + SLOWEST);
    loop {
        if let Some(length) = read[seen..].iter().position(|byte| *byte == b'\n').map(|place| seen + place) {
            let rest = read.split_off(length + 1);
            let mut line = std::mem::replace(read, rest);
            line.truncate(length);
            return Ok(line);
        }
        if read.len() >= LONGEST_REQUEST {
            let text = format!("a request has at most {LONGEST_REQUEST} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        seen = read.len();
        let left = end.map_or(SILENCE, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        more(stream, read, left)?;
        end = end.or_else(|| Some(Instant::now() + SLOWEST));
    }
}

/// Waits at most so long for more bytes.
fn more(mut stream: &UnixStream, read: &mut Vec<u8>, most: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(most))?;
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(length) => {
            read.extend_from_slice(&buffer[..length]);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error),
    }
}
