//! What is known of one kind of span at one place.

use crate::stats::add;
use crate::values::{Ratios, Values};
use dflash_timeline::record::Span;

/// One kind of span at one place below its lane.
#[derive(Default)]
pub(super) struct Node {
    pub depth: u8,
    pub spans: u64,
    pub host: Values,
    /// Of the iterations that have a device time; most of many names have none.
    pub device: Option<Box<OnDevice>>,
    /// Sums of the iteration at hand; `None` if it has not come by here.
    pub now: Option<Sums>,
}

/// What iterations with a device time add to a node.
#[derive(Default)]
pub(super) struct OnDevice {
    pub times: Values,
    /// Host ÷ device time.
    pub ratios: Ratios,
    /// How far the device was behind at the stage's begin ÷ device time.
    pub lags: Ratios,
    /// How far it was behind at the stage's end ÷ device time.
    pub left: Ratios,
    /// The longest time on either clock.
    pub longest_ns: u64,
}

impl OnDevice {
    pub(super) fn add(&mut self, sums: &Sums) {
        let device_ns = sums.device_ns.max(1) as f64;
        self.times.push(sums.device_ns);
        self.ratios.push((sums.host_ns as f64 / device_ns) as f32);
        self.lags.push((sums.lag_ns as f64 / device_ns) as f32);
        self.left.push((sums.left_ns as f64 / device_ns) as f32);
        self.longest_ns = self.longest_ns.max(sums.host_ns).max(sums.device_ns);
    }
}

/// One node in one iteration. A part of the spans' device times would pass for less than it is: all or none.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub host_ns: u64,
    pub device_ns: u64,
    /// How far the device was behind when the first of the spans began.
    pub lag_ns: i64,
    /// How far it was behind when the last of them ended.
    pub left_ns: i64,
    pub untimed: bool,
}

impl Sums {
    /// Adds a span; they come as they began.
    pub(super) fn take(&mut self, span: &Span, first: bool) {
        if let Some(device) = span.device {
            if first {
                self.lag_ns = device.begin_ns.saturating_sub(span.begin_ns);
            }
            let device_end_ns = device.begin_ns.saturating_add_unsigned(device.duration_ns);
            self.left_ns = device_end_ns.saturating_sub(span.begin_ns.saturating_add_unsigned(span.duration_ns));
        }
        add(&mut self.host_ns, span.duration_ns);
        add(&mut self.device_ns, span.device.map_or(0, |device| device.duration_ns));
        self.untimed |= span.device.is_none();
    }
}
