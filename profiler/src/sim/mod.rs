//! A simulated device, with a clock that drifts and faults on demand: device timing is tested on it without a GPU.
//!
//! ```
//! use dflash_profiler::sim::{SimClock, SimDevice};
//! use dflash_profiler::{DeviceEvent, DeviceStream};
//! use std::time::Duration;
//!
//! let clock = SimClock::manual(0);
//! let device = SimDevice::new(0, clock.clone()).drift_ppm(7.0);
//! let stream = device.stream(1);
//! let (mut begin, mut end) = (stream.new_event()?, stream.new_event()?);
//! stream.record(&mut *begin)?;
//! stream.work(Duration::from_millis(2));
//! stream.record(&mut *end)?;
//! assert!(!end.ready()?);
//! clock.advance(Duration::from_millis(3));
//! assert!(end.ready()?);
//! let off = begin.elapsed_ns(&*end)? - 2_000_000;
//! assert!((0..=5_000).contains(&off), "the launch, 14 ns of drift, a tick of 32 ns: {off}");
//! # Ok::<(), dflash_profiler::DeviceError>(())
//! ```

mod allocator;
mod clock;
mod device;
mod stream;

pub use allocator::SimAllocator;
pub use clock::SimClock;
pub use device::SimDevice;
pub use stream::{SimEvent, SimStream};
