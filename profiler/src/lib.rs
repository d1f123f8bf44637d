#![doc = include_str!("../README.md")]

mod cpu;
mod device;
mod error;
#[cfg(not(feature = "spans"))]
mod off;
#[cfg(feature = "spans")]
mod on;
mod options;
mod profile_stats;
mod samplers_options;
pub mod sim;

pub use cpu::{CpuOptions, CpuReport, ThreadStack};
pub use device::{
    AllocatorCounters, AllocatorStats, DeviceError, DeviceEvent, DeviceStream, KernelCapture, StreamArgument, StreamKey,
};
/// The clock that the timeline's times are on, and the host that it is on.
pub use dflash_sys::{hostname, monotonic_ns};
pub use dflash_timeline as timeline;
pub use dflash_timeline::record::{Kind, Severity, Totals};
pub use error::{Error, Result};
#[cfg(not(feature = "spans"))]
pub use off::*;
#[cfg(feature = "spans")]
pub use on::*;
pub use options::{Bare, DeviceTiming, LaneAccount, Level, Options, Stat};
pub use profile_stats::ProfileStats;
pub use samplers_options::{GpuDevice, NvmlOptions};
