//! The small unsafe corners of dflash, one job a file: clocks, dlopen, memory, processes, the signals that stop a run,
//! stacks of running threads.

mod clock;
mod dl;
mod memory;
mod process;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod sampling;
mod stop;
mod thread;

pub use clock::{monotonic_ns, process_cpu_ns, realtime_ns, thread_cpu_ns};
pub use dl::dlopen_global;
pub use memory::keep_freed_memory;
pub use process::{hostname, page_size, pid_alive};
pub use stop::{StopFlag, install_stop_flag};
pub use thread::{cpu_ns_of, current_thread_name, current_tid};
