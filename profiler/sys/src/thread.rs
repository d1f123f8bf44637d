//! Threads of this process: their names and their CPU time.

/// CPU time that thread `tid` of this process has used, nanoseconds; `None`: there is no such thread.
#[must_use]
pub fn cpu_ns_of(tid: u32) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills in.
    let read = unsafe { libc::clock_gettime(cpu_clock(tid), &raw mut time) };
    (read == 0).then(|| (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs())
}

/// The calling thread's number in its system.
#[must_use]
pub fn current_tid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// The calling thread's name, as the kernel has it: at most 15 bytes.
#[must_use]
pub fn current_thread_name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes, the last of them a NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The clock of a thread's CPU time: its number, inverted, above three bits that mean "per thread, as scheduled".
pub(crate) fn cpu_clock(tid: u32) -> libc::clockid_t {
    (!tid.cast_signed() << 3) | 6
}

#[cfg(test)]
mod tests {
    use super::{cpu_ns_of, current_thread_name, current_tid};

    #[test]
    fn a_threads_cpu_time_is_read_from_outside() {
        let (send, receive) = std::sync::mpsc::channel();
        let body = move || {
            let begin = crate::thread_cpu_ns();
            while crate::thread_cpu_ns() - begin < 5_000_000 {}
            send.send((current_tid(), current_thread_name())).unwrap();
            std::thread::park();
        };
        let thread = std::thread::Builder::new().name("a name of more than 15".into()).spawn(body).unwrap();
        let (tid, name) = receive.recv().unwrap();
        assert_eq!(&name, b"a name of more \0");
        assert!(cpu_ns_of(tid).unwrap() >= 5_000_000);
        thread.thread().unpark();
        thread.join().unwrap();
        assert_eq!(cpu_ns_of(u32::MAX >> 4), None);
    }
}
