//! What forked children need: a process that forks has its threads in the parent alone.

use std::io;
use std::time::{Duration, Instant};

/// From now on `first` runs in every forked child before `fork` returns there. It may only do what a signal handler may,
/// e.g. store to an atomic. Nothing happens where the system has no room for it.
pub fn in_forked_children(first: extern "C" fn()) {
    let first: unsafe extern "C" fn() = first;
    // SAFETY: `first` is a function of this program, which is never unloaded; the other two hooks are left out.
    unsafe { libc::pthread_atfork(None, None, Some(first)) };
}

/// Forks, runs `work` in the child, which then ends at once with its code, and waits for it. For tests: most of what a
/// child of a process with threads may do is nothing. `work` must not panic.
///
/// # Errors
/// The system gave no process, or the child did not end within `limit` (it is killed) or not by itself.
#[doc(hidden)]
pub fn fork_and_wait(limit: Duration, work: impl FnOnce() -> u8) -> io::Result<u8> {
    // SAFETY: the child runs `work` on a copy of this thread alone and leaves by `_exit`, so that nothing of the parent
    // is unwound or flushed twice. glibc keeps its allocator usable in the child.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let code = work();
        // SAFETY: ends this process; nothing of it runs any more.
        unsafe { libc::_exit(libc::c_int::from(code)) }
    }
    let begin = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `child` is a child of this process that nobody else waits for, `status` a valid place for its state.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if begin.elapsed() > limit {
            // SAFETY: the child was not waited for yet, so that the number is still its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the child hangs"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status) as u8)
    } else {
        Err(io::Error::other(format!("the child ended with status {status:#x}")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::time::Duration;

    use super::{fork_and_wait, in_forked_children};

    static CODE: AtomicU8 = AtomicU8::new(3);

    extern "C" fn first() {
        CODE.store(4, Ordering::Relaxed);
    }

    #[test]
    fn the_hook_runs_in_the_child_alone() {
        let child = || fork_and_wait(Duration::from_secs(20), || CODE.load(Ordering::Relaxed));
        assert_eq!(child().unwrap(), 3);
        in_forked_children(first);
        assert_eq!(child().unwrap(), 4);
        assert_eq!(CODE.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_child_that_hangs_is_ended() {
        let error = fork_and_wait(Duration::from_millis(50), || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    }
}
