//! Who is at the other end of a unix socket.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The user whose rights this process has.
#[must_use]
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user whose rights the other process had when it connected, as the kernel noted it.
///
/// # Errors
/// The system's.
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    // SAFETY: ucred is a plain C struct of three numbers, for which zeroes are valid.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `stream` is borrowed; `peer` is a valid place of `length` bytes, which
    // the kernel does not exceed.
    let done = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    };
    if done == 0 && length as usize == size_of::<libc::ucred>() {
        Ok(peer.uid)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    use super::{effective_uid, peer_uid};

    #[test]
    fn both_ends_here_are_this_user() {
        let (a, b) = UnixStream::pair().unwrap();
        assert_eq!(peer_uid(&a).unwrap(), effective_uid());
        assert_eq!(peer_uid(&b).unwrap(), std::fs::metadata("/proc/self").unwrap().uid());
    }
}
