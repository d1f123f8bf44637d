//! Whether the process that writes a run is still there.

use std::fs;

/// Name of this machine; empty if the kernel does not tell.
pub(crate) fn hostname() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// When a process of this machine started, in ticks since boot; `None` if it is gone or a zombie.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold spaces and parentheses itself.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    // The state is field 3 of proc_pid_stat(5), the start time field 22.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::start_ticks;

    #[test]
    fn this_process_lives_and_no_other() {
        assert!(start_ticks(std::process::id()).is_some());
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
