//! Reaching a socket without ever hanging on it.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Connects to a unix socket. A server that lives but does not accept makes the system wait for ever once its queue is
/// full; here that is an error of the kind `TimedOut`.
///
/// # Errors
/// The system's; `ConnectionRefused` says that the socket is left over, and nobody serves it.
pub fn connect(path: &Path, within: Duration) -> io::Result<UnixStream> {
    let (path, (done, connected)) = (path.to_owned(), channel());
    // A thread that hangs in `connect` ends when the server accepts or ends; whom it would have told is gone by then.
    let work = move || drop(done.send(UnixStream::connect(path)));
    thread::Builder::new().name("dflash-connect".into()).spawn(work)?;
    connected.recv_timeout(within).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Where another process of the same run listens: `<name>.sock` is rank 0's, `<name>.<rank>.sock` another's.
#[must_use]
pub fn of_rank(rank_0: &Path, rank: u32) -> PathBuf {
    if rank == 0 { rank_0.to_owned() } else { rank_0.with_extension(format!("{rank}.sock")) }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::time::Duration;

    use super::{connect, of_rank};

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_socket_left_over_is_refused_and_none_is_not_found() {
        // A socket's path is short, that of the temporary directory need not be.
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let path = directory.path().join("a.sock");
        assert_eq!(connect(&path, PATIENCE).unwrap_err().kind(), ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        assert!(connect(&path, PATIENCE).is_ok());
        drop(listener);
        assert_eq!(connect(&path, PATIENCE).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn ranks_lie_side_by_side() {
        assert_eq!(of_rank(Path::new("/r/ab.sock"), 0), Path::new("/r/ab.sock"));
        assert_eq!(of_rank(Path::new("/r/ab.sock"), 3), Path::new("/r/ab.3.sock"));
    }
}
