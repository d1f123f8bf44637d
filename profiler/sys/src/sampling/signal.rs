//! Which signal it is, and whose: chosen among the real-time ones that nobody handles, given back when nobody samples.

use std::io;
use std::sync::Mutex;

use super::handler::on_signal;
use super::state::lock;

/// How many sessions use the signal, and what was there before.
static USED: Mutex<Option<Used>> = Mutex::new(None);

struct Used {
    sessions: usize,
    signal: libc::c_int,
    before: libc::sigaction,
}

/// The handler is installed as long as one of these lives.
#[derive(Debug)]
pub(super) struct Installed {
    signal: libc::c_int,
}

impl Installed {
    /// Installs the handler, unless it is.
    pub(super) fn new() -> io::Result<Self> {
        let mut used = lock(&USED);
        if let Some(used) = &mut *used {
            used.sessions += 1;
            return Ok(Self { signal: used.signal });
        }
        // The highest is valgrind's.
        let free = (libc::SIGRTMIN()..libc::SIGRTMAX()).rev().find(|signal| handler_of(*signal) == Some(libc::SIG_DFL));
        let signal = free.ok_or_else(|| io::Error::other("every real-time signal of this process is in use"))?;
        let before = set(signal, &ours())?;
        *used = Some(Used { sessions: 1, signal, before });
        Ok(Self { signal })
    }

    /// The signal.
    pub(super) fn signal(&self) -> libc::c_int {
        self.signal
    }

    /// Whether the handler is still ours. Somebody who installs one later does not know of it.
    pub(super) fn is_ours(&self) -> bool {
        handler_of(self.signal) == Some(ours().sa_sigaction)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let mut used = lock(&USED);
        let Some(mut last) = used.take() else { return };
        last.sessions -= 1;
        if last.sessions > 0 {
            *used = Some(last);
        } else if self.is_ours() {
            // A signal that was sent and not yet taken would end the process by the default action. To ignore a signal
            // throws it away wherever it is pending.
            let mut ignore = ours();
            (ignore.sa_sigaction, ignore.sa_flags) = (libc::SIG_IGN, 0);
            let _ = set(self.signal, &ignore);
            let _ = set(self.signal, &last.before);
        }
    }
}

fn ours() -> libc::sigaction {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    // SAFETY: sigaction is a plain C struct, for which zeroes (no flags, empty mask) are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the mask is that struct's own. Nothing interrupts the handler, so that what it has claimed it gives back.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    action
}

fn set(signal: libc::c_int, action: &libc::sigaction) -> io::Result<libc::sigaction> {
    // SAFETY: as in `ours`.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid; the handler in `action` is `on_signal`, which may run at any moment, SIG_IGN, or what the
    // system itself returned before.
    match unsafe { libc::sigaction(signal, action, &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

fn handler_of(signal: libc::c_int) -> Option<libc::sighandler_t> {
    // SAFETY: as in `ours`.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; `now` has room for the answer.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    (asked == 0).then_some(now.sa_sigaction)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Mutex, MutexGuard};

    use super::{Installed, handler_of, set};

    /// The signal is the process's, so one test uses it at a time.
    pub(in crate::sampling) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        super::lock(&ALONE)
    }

    extern "C" fn somebody_elses(_: libc::c_int) {}

    fn theirs() -> libc::sigaction {
        let mut action = super::ours();
        action.sa_flags = 0;
        action.sa_sigaction = somebody_elses as *const () as libc::sighandler_t;
        action
    }

    #[test]
    fn a_handler_that_is_there_stays() {
        let _alone = alone();
        let first = Installed::new().unwrap().signal();
        assert_eq!(handler_of(first), Some(libc::SIG_DFL), "given back");
        let before = set(first, &theirs()).unwrap();
        let second = Installed::new().unwrap();
        assert_ne!(second.signal(), first, "another one is taken");
        drop(second);
        assert_eq!(handler_of(first), Some(theirs().sa_sigaction));
        set(first, &before).unwrap();
    }

    #[test]
    fn a_handler_that_comes_later_is_noticed_and_stays() {
        let _alone = alone();
        let (installed, also) = (Installed::new().unwrap(), Installed::new().unwrap());
        let signal = installed.signal();
        drop(also);
        assert!(installed.is_ours(), "one of two sessions is left");
        let ours = set(signal, &theirs()).unwrap();
        assert!(!installed.is_ours());
        drop(installed);
        assert_eq!(handler_of(signal), Some(theirs().sa_sigaction), "theirs is not removed");
        let mut default = ours;
        (default.sa_sigaction, default.sa_flags) = (libc::SIG_DFL, 0);
        set(signal, &default).unwrap();
    }
}
