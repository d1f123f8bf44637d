//! Asking threads for their stacks, whatever they do.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::handler::Labeller;
use super::record::Sample;
use super::signal::Installed;
use super::state;

static ALONE: Mutex<()> = Mutex::new(());
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// One round of questions. Another thread that asks meanwhile waits.
#[derive(Debug)]
pub struct Asking {
    // First, so that the handler goes before another round may begin.
    installed: Installed,
    request: u32,
    _alone: MutexGuard<'static, ()>,
}

impl Asking {
    /// Installs the handler, if need be.
    ///
    /// # Errors
    /// No real-time signal is free, or the system does not let a process read its own memory.
    pub fn start(label: Labeller) -> io::Result<Self> {
        let alone = state::lock(&ALONE);
        let state = state::get_or_make(label)?;
        state.refresh();
        let installed = Installed::new()?;
        while state.answers.pop(|_| ()) {}
        // 0 means "nothing is asked".
        let request = REQUESTS.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        state.request.store(request, Ordering::Release);
        Ok(Self { installed, request, _alone: alone })
    }

    /// Asks thread `tid`, which must not block the signal. `hint` is for the labeller.
    ///
    /// # Errors
    /// The thread has ended, or too many signals are pending (`ulimit -i`).
    pub fn ask(&self, tid: u32, hint: u64) -> io::Result<()> {
        // SAFETY: siginfo is a plain C struct, for which zeroes are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        info.si_signo = self.signal();
        info.si_code = libc::SI_QUEUE;
        // Nobody's for such a signal, and delivered as it is: which request this belongs to.
        info.si_errno = self.request.cast_signed();
        // SAFETY: getpid and getuid take nothing and cannot fail.
        let (pid, uid) = unsafe { (libc::getpid(), libc::getuid()) };
        let rest = Queued { pid, uid, value: libc::sigval { sival_ptr: hint as *mut libc::c_void } };
        // SAFETY: behind si_signo, si_errno, si_code and padding to 8 bytes, a queued signal has exactly these fields;
        // siginfo_t is 128 bytes long.
        unsafe { (&raw mut info).byte_add(16).cast::<Queued>().write(rest) };
        // SAFETY: `info` is valid; the kernel refuses a thread that is not of this process.
        let sent = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, self.signal(), &raw const info) };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The signal in use.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.installed.signal()
    }

    /// Shows an answer to `use_it`; `false`: there is none yet.
    pub fn next(&mut self, use_it: impl FnOnce(&Sample)) -> bool {
        let own = self.request;
        let only_own = |sample: &Sample| {
            if sample.request == own {
                use_it(sample)
            }
        };
        state::get().is_some_and(|state| state.answers.pop(only_own))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(state) = state::get() {
            state.request.store(0, Ordering::Release);
        }
    }
}

/// What a queued signal carries.
#[repr(C)]
struct Queued {
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: libc::sigval,
}
