//! SIGINT, SIGTERM, SIGHUP and SIGUSR1 as a flag: the first asks the run to stop; a second SIGINT or SIGTERM ends it at
//! once.
//!
//! A terminal that goes away sends SIGHUP, often twice (the kernel, then the shell), and a service manager sends it along
//! with SIGTERM: it never counts as a second signal.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// The signal that asked this process to stop; 0: none did. A byte, so that the handler only needs one store.
static STOP: AtomicU8 = AtomicU8::new(0);

/// Whether somebody asked this process to stop.
#[derive(Clone, Copy, Debug)]
pub struct StopFlag(&'static AtomicU8);

impl StopFlag {
    /// The signal that asked: SIGINT (2), SIGTERM (15), SIGHUP (1), or SIGUSR1 (10), by which a queueing system asks for
    /// an end in good time.
    #[must_use]
    pub fn signal(self) -> Option<u8> {
        Some(self.0.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_set(self) -> bool {
        self.signal().is_some()
    }

    /// The exit code that says so: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; none after SIGUSR1: that end is
    /// as good as any.
    #[must_use]
    pub fn exit_code(self) -> Option<u8> {
        self.signal().filter(|signal| i32::from(*signal) != libc::SIGUSR1).map(|signal| 128 + signal)
    }
}

/// Makes SIGINT, SIGTERM, SIGHUP and SIGUSR1 set a flag. A second SIGINT or SIGTERM ends the process with 130 or 143,
/// whatever it does; the one that follows SIGHUP or SIGUSR1 is the first. Where SIGHUP is ignored (`nohup`) it stays so.
///
/// # Errors
/// The system's.
pub fn install_stop_flag() -> io::Result<StopFlag> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
        install(signal)?;
    }
    if !is_ignored(libc::SIGHUP)? {
        install(libc::SIGHUP)?;
    }
    Ok(StopFlag(&STOP))
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: sigaction is a plain C struct, for which zeroes (no flags, empty mask) are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action nothing is changed; the old one is written to `action`, which lives.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } {
        0 => Ok(action.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

fn install(signal: libc::c_int) -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: sigaction is a plain C struct, for which zeroes (no flags, empty mask) are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // Interrupted system calls go on: the run stops between two iterations, not in the middle of a write.
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is a valid sigaction whose handler is an `extern "C"` function of the right type that only does
    // what a signal handler may: an atomic exchange and `_exit`. The old action is not asked for.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a signal only asks, however often it comes.
fn is_soft(signal: libc::c_int) -> bool {
    signal == libc::SIGUSR1 || signal == libc::SIGHUP
}

extern "C" fn on_signal(signal: libc::c_int) {
    if is_soft(signal) {
        // It never takes the place of a harder one.
        let _ = STOP.compare_exchange(0, signal as u8, Ordering::Relaxed, Ordering::Relaxed);
        return;
    }
    let before = STOP.swap(signal as u8, Ordering::Relaxed);
    if before != 0 && !is_soft(before.into()) {
        // SAFETY: _exit may be called in a signal handler; it runs nothing of this process any more.
        unsafe { libc::_exit(128 + signal) }
    }
}
