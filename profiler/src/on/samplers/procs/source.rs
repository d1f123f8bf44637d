//! Where the figures come from: clocks of the kernel, and /proc where it has none.

use std::fs;
use std::path::Path;

/// What is read each turn; a test has its own.
pub(super) trait Source {
    /// CLOCK_MONOTONIC.
    fn now_ns(&self) -> i64;
    /// CPU time of the process so far.
    fn process_cpu_ns(&self) -> u64;
    /// Voluntary and involuntary context switches so far.
    fn switches(&self) -> Option<(u64, u64)>;
    /// Bytes in memory, and the most so far.
    fn memory(&self) -> Option<(u64, u64)>;
    /// Ids of the threads.
    fn threads(&self) -> Vec<u32>;
    /// CPU time of a thread so far; `None` once it has ended.
    fn cpu_ns(&self, thread: u32) -> Option<u64>;
    /// Its name: at most 15 bytes, the kernel cuts it.
    fn name(&self, thread: u32) -> Option<String>;
}

/// This process, as the kernel sees it.
#[derive(Debug, Default)]
pub(super) struct Kernel;

impl Source for Kernel {
    fn now_ns(&self) -> i64 {
        dflash_sys::monotonic_ns()
    }

    fn process_cpu_ns(&self) -> u64 {
        dflash_sys::process_cpu_ns()
    }

    fn switches(&self) -> Option<(u64, u64)> {
        dflash_sys::context_switches()
    }

    fn memory(&self) -> Option<(u64, u64)> {
        memory(&fs::read_to_string("/proc/self/status").ok()?)
    }

    fn threads(&self) -> Vec<u32> {
        let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    fn cpu_ns(&self, thread: u32) -> Option<u64> {
        // A sandbox may lack the clocks of other threads.
        dflash_sys::cpu_ns_of_thread(thread).or_else(|| task_cpu_ns(&task(thread)))
    }

    fn name(&self, thread: u32) -> Option<String> {
        Some(name(&fs::read(Path::new(&task(thread)).join("comm")).ok()?))
    }
}

fn task(thread: u32) -> String {
    format!("/proc/self/task/{thread}")
}

/// A name as bytes; one that is cut within a character loses that character.
fn name(comm: &[u8]) -> String {
    let comm = comm.strip_suffix(b"\n").unwrap_or(comm);
    let text = match std::str::from_utf8(comm) {
        Err(error) if error.error_len().is_none() => &comm[..error.valid_up_to()],
        _ => comm,
    };
    String::from_utf8_lossy(text).into_owned()
}

/// `VmRSS` and `VmHWM` of proc_pid_status(5).
fn memory(status: &str) -> Option<(u64, u64)> {
    let bytes = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
    };
    Some((bytes("VmRSS")?, bytes("VmHWM")?))
}

/// CPU time of a thread from files: exact from schedstat, where the kernel has it, else from stat, in 10 ms.
fn task_cpu_ns(task: &str) -> Option<u64> {
    let exact = fs::read_to_string(Path::new(task).join("schedstat")).ok();
    exact.and_then(|text| text.split_ascii_whitespace().next()?.parse().ok()).or_else(|| {
        let stat = fs::read_to_string(Path::new(task).join("stat")).ok()?;
        stat_cpu_ns(&stat)
    })
}

/// utime + stime of proc_pid_stat(5); the tick there is 10 ms on every Linux that Rust runs on.
fn stat_cpu_ns(stat: &str) -> Option<u64> {
    // The name stands in parentheses and may hold spaces and parentheses itself.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::{Kernel, Source, memory, name, stat_cpu_ns, task, task_cpu_ns};

    #[test]
    fn a_name_with_parentheses() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194304 80 0 0 0 12 30 0 0 20 0 1 0 200 8192";
        assert_eq!(stat_cpu_ns(stat), Some(420_000_000));
        assert_eq!(stat_cpu_ns("nonsense"), None);
    }

    #[test]
    fn a_name_cut_within_a_character_is_no_reason_to_lose_the_thread() {
        assert_eq!(name("prüfer-prüfer\n".as_bytes()), "prüfer-prüfer");
        assert_eq!(name(&"0123456789abcdé".as_bytes()[..15]), "0123456789abcd");
        assert_eq!(name(b"a\xffb\n"), "a\u{fffd}b");
        assert_eq!(name(b"a b\n\n"), "a b\n", "a name may end in a line break of its own");
    }

    #[test]
    fn memory_is_in_kibibytes() {
        let status = "Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t1\n";
        assert_eq!(memory(status), Some((1 << 20, 2 << 20)));
        assert_eq!(memory("Name:\tx\n"), None, "a kernel thread has no memory");
    }

    #[test]
    fn files_and_clocks_agree() {
        let me = dflash_sys::thread_id();
        let before = Kernel.cpu_ns(me).unwrap();
        // A scheduler's tick may be missing in the file.
        let file = task_cpu_ns(&task(me)).unwrap();
        assert!(file + 1_000_000_000 > before, "{file} {before}");
        assert!(Kernel.threads().contains(&me));
        let (resident, peak) = Kernel.memory().unwrap();
        assert!(100_000 < resident && resident <= peak);
    }
}
