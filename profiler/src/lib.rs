#![doc = include_str!("../README.md")]

mod cpu;
mod device;
mod error;
#[cfg(not(feature = "spans"))]
mod off;
#[cfg(feature = "spans")]
mod on;
mod options;

pub use cpu::{CpuOptions, CpuReport, ThreadStack};
pub use device::{AllocatorCounters, AllocatorStats, DeviceError, DeviceEvent, DeviceStream, KernelCapture, StreamKey};
pub use dflash_timeline as timeline;
pub use dflash_timeline::record::{Kind, Severity, Totals};
pub use error::{Error, Result};
#[cfg(not(feature = "spans"))]
pub use off::*;
#[cfg(feature = "spans")]
pub use on::*;
pub use options::{Level, Options, Stat};
