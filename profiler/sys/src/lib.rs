//! The small unsafe corners of dflash, one job a file: clocks, dlopen, fork, memory, processes, the signals that stop a run,
//! stacks of running threads.

mod clock;
#[cfg(feature = "counting")]
mod counting;
mod dl;
mod fork;
mod memory;
#[cfg(feature = "nvml")]
mod nvlink;
mod peer;
mod process;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod sampling;
mod stop;
mod thread;

#[cfg(target_arch = "x86_64")]
pub use clock::counter;
pub use clock::{monotonic_ns, process_cpu_ns, realtime_ns, thread_cpu_ns};
#[cfg(feature = "counting")]
pub use counting::{Counting, allocations};
pub use dl::dlopen_global;
pub use fork::{fork_and_wait, in_forked_children};
pub use memory::keep_freed_memory;
#[cfg(feature = "nvml")]
pub use nvlink::nvlink_bytes;
pub use peer::{effective_uid, peer_uid};
pub use process::{hostname, page_size, pid_alive};
pub use stop::{StopFlag, install_stop_flag};
pub use thread::{context_switches, cpu_ns_of_thread, current_thread_name, thread_id};
