//! What the profiler's threads cost so far, from /proc.

use std::fs;
use std::path::Path;

/// CPU time of the threads named `dflash-…` that live, nanoseconds.
pub(super) fn threads_cpu_ns() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    // A thread may end while it is looked at: then it is left out.
    tasks.filter_map(|task| own_cpu_ns(&task.ok()?.path())).sum()
}

fn own_cpu_ns(task: &Path) -> Option<u64> {
    let name = fs::read_to_string(task.join("comm")).ok()?;
    if !name.starts_with("dflash-") {
        return None;
    }
    // schedstat: time on a core, time waiting for one, slices; a kernel without it counts nothing.
    fs::read_to_string(task.join("schedstat")).ok()?.split_ascii_whitespace().next()?.parse().ok()
}
