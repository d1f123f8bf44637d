//! Device time: events recorded on a span's stream, timed later on a thread that nobody waits for.
//!
//! A lane (`lane`) records an event at each end of a span and sends it to the thread `dflash-device` (`collector`). There
//! the events of a lane's stream form a queue (`fifo`), of which only the head is asked whether it is ready: streams
//! complete in order. Neighbours are compared and the differences summed, since a device tells times as f32
//! milliseconds; the sums are laid on the host's clock by anchors, taken on a stream of the profiler's own (`anchors`, `fit`).
//! The times go to the writer's thread, where the spans wait for them (`times`). Stages that are too short to be worth two
//! events are timed in some iterations only (`strides`).
//!
//! The collector has a thread of its own, since a call to a device may block, or never return: the writer goes on then,
//! and the spans that wait are written without device time.

mod anchors;
mod collector;
mod fifo;
mod fit;
mod lane;
mod shared;
mod strides;
#[cfg(test)]
mod tests;
mod times;

pub(crate) use lane::{DeviceLane, LOST};
pub(crate) use shared::{DeviceHub, DeviceShared};
pub(crate) use strides::Strides;
pub(crate) use times::{Look, Times};
