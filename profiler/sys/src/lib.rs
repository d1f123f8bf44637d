//! The small unsafe corners of dflash, one job a file: clocks, dlopen, fork, memory, processes, the signals that stop a run.

mod clock;
mod dl;
mod fork;
mod memory;
mod process;
mod stop;

#[cfg(target_arch = "x86_64")]
pub use clock::counter;
pub use clock::{monotonic_ns, process_cpu_ns, realtime_ns, thread_cpu_ns};
pub use dl::dlopen_global;
pub use fork::{fork_and_wait, in_forked_children};
pub use memory::keep_freed_memory;
pub use process::{hostname, page_size, pid_alive};
pub use stop::{StopFlag, install_stop_flag};
