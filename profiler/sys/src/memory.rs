//! How the C allocator treats big blocks.

/// Makes malloc keep freed memory instead of giving it back to the kernel at once. Returns whether it took.
///
/// By default every block above some 100 kB is mapped when it is made and unmapped when it is freed; a program that
/// makes and frees tensors all the time then spends a sixth of its CPU time on page faults. The price: the process
/// stays as big as it ever was.
#[cfg(target_env = "gnu")]
pub fn keep_freed_memory() -> bool {
    // SAFETY: mallopt only sets parameters of the allocator; it may be called at any time, from any thread.
    let set = |parameter, value| unsafe { libc::mallopt(parameter, value) } == 1;
    set(libc::M_MMAP_MAX, 0) && set(libc::M_TRIM_THRESHOLD, libc::c_int::MAX) && set(libc::M_TOP_PAD, 64 << 20)
}

/// Other C libraries have no such switch.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory() -> bool {
    false
}
