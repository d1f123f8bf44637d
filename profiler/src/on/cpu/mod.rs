//! CPU samples under the spans that were open when they hit, and the stacks of all threads now.
//!
//! The signal handler is dflash-sys's. What it may look at is in `slots` (plain atomics, one slot a lane), and `helpers`
//! says whose work a thread without a lane does. Outside of the handler, on the thread `dflash-cpu`: `watched` gives each
//! thread its timer, `sampler` takes the samples, `symbols` (with `maps`, `elf`, `demangle`) names their functions, and
//! they go to the writer, or into a `pprof` profile. `stacks` asks every thread. `control` is the public part.

mod control;
mod demangle;
mod elf;
pub(crate) mod helpers;
mod maps;
mod pprof;
mod sampler;
pub(crate) mod slots;
mod stacks;
mod symbols;
mod tasks;
mod watched;

pub(crate) use control::{Cpu, Which};
