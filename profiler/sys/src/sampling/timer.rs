//! A timer on the CPU time of one thread, which sends the signal to that very thread.

use std::io;

/// Ends when dropped.
#[derive(Debug)]
pub struct ThreadTimer(libc::timer_t);

// SAFETY: a timer's id belongs to the process; any thread may delete it.
unsafe impl Send for ThreadTimer {}

impl ThreadTimer {
    /// A signal after each 1/`hz` seconds of CPU time that thread `tid` uses; `hint` comes with it.
    pub(super) fn new(signal: libc::c_int, tid: u32, hz: u32, hint: u64) -> io::Result<Self> {
        // SAFETY: sigevent is a plain C struct, for which zeroes are valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_value = libc::sigval { sival_ptr: hint as *mut libc::c_void };
        event.sigev_notify_thread_id = tid.cast_signed();
        let mut id: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both are valid for the call. The kernel refuses a thread that is not of this process.
        if unsafe { libc::timer_create(crate::thread::cpu_clock(tid), &raw mut event, &raw mut id) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Self(id);
        let interval_ns = 1_000_000_000 / i64::from(hz.max(1));
        // Threads that begin together shall not be interrupted together for ever.
        let first_ns = 1 + interval_ns * i64::from(tid.wrapping_mul(0x9e37_79b9) >> 16) / (1 << 16);
        let time = |ns: i64| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let setting = libc::itimerspec { it_interval: time(interval_ns), it_value: time(first_ns) };
        // SAFETY: the timer was just made; the setting is valid; the old one is not asked for.
        match unsafe { libc::timer_settime(timer.0, 0, &raw const setting, std::ptr::null_mut()) } {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}
