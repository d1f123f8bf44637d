//! The kernel's clocks, in nanoseconds.

/// CLOCK_MONOTONIC: the same for every process of this machine, and it never steps.
#[inline]
#[must_use]
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME: nanoseconds since 1970. It may step.
#[must_use]
pub fn realtime_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time that the calling thread has used. A system call of some 370 ns: not for each span.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unsigned_abs()
}

/// CPU time that all threads of this process have used.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unsigned_abs()
}

/// The processor's time stamp counter. What a tick is, and whether processors agree, is the caller's to find out.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn counter() -> u64 {
    // SAFETY: the instruction only reads a register; Linux never forbids it to programs that did not ask for that.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills in. These four clocks exist on every Linux, so that it
    // cannot fail; if it did, `time` would stay 0.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::{monotonic_ns, process_cpu_ns, realtime_ns, thread_cpu_ns};

    #[test]
    fn clocks_advance() {
        let (begin, cpu) = (monotonic_ns(), thread_cpu_ns());
        while monotonic_ns() - begin < 3_000_000 {}
        assert!(thread_cpu_ns() > cpu);
        assert!(process_cpu_ns() >= thread_cpu_ns());
        assert!(realtime_ns() > 1_600_000_000_000_000_000, "the date is wrong");
    }

    #[test]
    fn a_sleeping_thread_uses_no_cpu() {
        let before = thread_cpu_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_cpu_ns() - before < 10_000_000);
    }
}
