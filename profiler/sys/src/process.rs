//! Facts about this machine and its processes.

/// Whether a process of this machine has this id (a zombie has; another user's has).
#[must_use]
pub fn pid_alive(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    if pid == 0 {
        // To kill, 0 means the caller's own group.
        return false;
    }
    // SAFETY: signal 0 is never delivered; the call only checks that the process exists.
    let sent = unsafe { libc::kill(pid, 0) };
    sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// This machine's name; empty if it has none.
#[must_use]
pub fn hostname() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer is valid for one byte less than its length, so the last byte stays 0 whatever the call does.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..length]).into_owned()
}

/// Bytes of a memory page.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf only looks a number up.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::{hostname, page_size, pid_alive};

    #[test]
    fn this_process_lives_and_others_do_not() {
        assert!(pid_alive(std::process::id()));
        assert!(pid_alive(1), "another user's process counts");
        assert!(!pid_alive(0));
        assert!(!pid_alive(u32::MAX));
        assert!(!pid_alive(0x3fff_ffff), "above the highest pid of Linux");
    }

    #[test]
    fn the_machine_has_a_name_and_pages() {
        assert_eq!(hostname(), std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim());
        assert!(page_size().is_power_of_two());
    }
}
