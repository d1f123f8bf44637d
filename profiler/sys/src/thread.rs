//! Threads of this process, seen from another one of them.

/// The kernel's id of the calling thread, as in /proc/self/task.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let id = unsafe { libc::gettid() };
    id.cast_unsigned()
}

/// CPU time that a thread of this process has used, in nanoseconds; `None` once it has ended. A system call of about a
/// microsecond, where a file of /proc takes ten.
#[must_use]
pub fn cpu_ns_of_thread(id: u32) -> Option<u64> {
    // How the kernel numbers the clock of a thread (pthread_getcpuclockid does the same): the id inverted, then 4 for
    // "a thread's" and 2 for "what the scheduler counted".
    let id = libc::clockid_t::try_from(id).ok().filter(|id| *id > 0 && *id < 1 << 28)?;
    let clock = (!id << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills in; a clock that does not exist is an error, not a fault.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (read == 0).then(|| (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs())
}

/// How often this process gave its processor up: because it waited, and because another was let in. Both grow.
#[must_use]
pub fn context_switches() -> Option<(u64, u64)> {
    // SAFETY: rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage that the call fills in.
    let read = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (read == 0).then(|| (usage.ru_nvcsw.unsigned_abs(), usage.ru_nivcsw.unsigned_abs()))
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
    use std::sync::mpsc;

    use super::{context_switches, cpu_ns_of_thread, thread_id};

    #[test]
    fn another_threads_clock_counts_its_work_and_ends_with_it() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let begin = crate::thread_cpu_ns();
            while crate::thread_cpu_ns() - begin < 3_000_000 {}
            tell.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let id = told.recv().unwrap();
        assert_ne!(id, thread_id());
        assert!(cpu_ns_of_thread(id).unwrap() >= 3_000_000);
        drop(end);
        thread.join().unwrap();
        // The kernel forgets the thread shortly after the one that joined it goes on.
        while cpu_ns_of_thread(id).is_some() {
            std::thread::yield_now();
        }
        assert_eq!((cpu_ns_of_thread(0), cpu_ns_of_thread(u32::MAX)), (None, None));
    }

    #[test]
    fn the_callers_clock_is_the_kernels() {
        let before = crate::thread_cpu_ns();
        let seen = cpu_ns_of_thread(thread_id()).unwrap();
        assert!(before <= seen && seen <= crate::thread_cpu_ns());
    }

    #[test]
    fn waiting_switches() {
        let (before, _) = context_switches().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(context_switches().unwrap().0 > before);
    }
}
