//! What the GPUs' sensors say, from counters `gpu.<device>.<sensor>`: the newest readings and their history.

use std::collections::BTreeMap;
use std::time::Duration;

use dflash_reports::timeline::Timeline;

use super::counters::{Histories, bridged};
use super::series::Bins;

/// No reading for so long, while others go on: the GPU is lost.
const LOST: Duration = Duration::from_secs(15);
/// Samples closer than this belong together.
const BRIDGED: Duration = Duration::from_secs(6);

/// The sensors with a place of their own on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sensor {
    /// Percent of the time with a kernel at work.
    Utilization,
    /// Bytes in use.
    MemoryUsed,
    /// Bytes there are.
    MemoryTotal,
    /// Watts.
    Power,
    /// Watts allowed.
    PowerLimit,
    /// MHz of the multiprocessors.
    Clock,
    /// Degrees Celsius.
    Temperature,
    /// NVML's bits of reasons for a low clock.
    Throttle,
    /// Bytes a second sent over NVLink.
    NvlinkTx,
    /// Bytes a second received over NVLink.
    NvlinkRx,
}

impl Sensor {
    const NAMES: [(&'static str, Self); 10] = [
        ("utilization", Self::Utilization),
        ("memory.used", Self::MemoryUsed),
        ("memory.total", Self::MemoryTotal),
        ("power", Self::Power),
        ("power.limit", Self::PowerLimit),
        ("clock.sm", Self::Clock),
        ("temperature", Self::Temperature),
        ("throttle", Self::Throttle),
        ("nvlink.tx", Self::NvlinkTx),
        ("nvlink.rx", Self::NvlinkRx),
    ];

    /// Device and sensor of a counter's name. A device's name may hold dots (`nvml:0.1`, a part of a GPU).
    fn of(counter: &str) -> Option<(&str, Self)> {
        let rest = counter.strip_prefix("gpu.")?;
        let found = Self::NAMES.iter().filter_map(|(name, sensor)| {
            let device = rest.strip_suffix(name)?.strip_suffix('.')?;
            Some((device, *sensor, name.len()))
        });
        // `power.limit` also ends like a sensor `limit` of a device `cuda:0.power` would.
        found.max_by_key(|(_, _, length)| *length).map(|(device, sensor, _)| (device, sensor))
    }
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// What it is called, where that is known.
    pub model: Option<String>,
    /// The newest readings.
    now: BTreeMap<Sensor, f64>,
    /// Readings over the window.
    curves: BTreeMap<Sensor, Vec<Option<f64>>>,
    /// It no longer answers.
    pub lost: bool,
    /// It is a part of a divided GPU (MIG), or divided.
    pub mig: bool,
}

impl Gpu {
    /// The newest reading; `None`: this GPU does not give it, or it is lost.
    #[must_use]
    pub fn now(&self, sensor: Sensor) -> Option<f64> {
        self.now.get(&sensor).copied().filter(|_| !self.lost)
    }

    /// Readings over the window.
    #[must_use]
    pub fn curve(&self, sensor: Sensor) -> &[Option<f64>] {
        self.curves.get(&sensor).map_or(&[], Vec::as_slice)
    }

    /// Part of the memory in use, 0 to 1.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        ratio(self.now(Sensor::MemoryUsed)?, self.now(Sensor::MemoryTotal)?)
    }

    /// Part of the power allowed that is drawn, 0 to 1 and a little above.
    #[must_use]
    pub fn power_share(&self) -> Option<f64> {
        ratio(self.now(Sensor::Power)?, self.now(Sensor::PowerLimit)?)
    }

    /// Why its clock is low, in a word; `None`: not known.
    #[must_use]
    pub fn throttle(&self) -> Option<&'static str> {
        self.now(Sensor::Throttle).map(|bits| reason(bits.max(0.0) as u64))
    }

    /// Whether something beside idling and its own power limit slows it down.
    #[must_use]
    pub fn is_slowed(&self) -> bool {
        self.now(Sensor::Throttle).is_some_and(|bits| bits.max(0.0) as u64 & (0x8 | 0x20 | 0x40 | 0x80) != 0)
    }

    /// A sensor as a part of what it can reach, 0 to 1, for a heat strip.
    #[must_use]
    pub fn heat(&self) -> Option<f64> {
        self.now(Sensor::Utilization).map(|percent| (percent / 100.0).clamp(0.0, 1.0))
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some(part / whole)
}

/// The most telling of NVML's reasons for a low clock.
fn reason(bits: u64) -> &'static str {
    const REASONS: [(u64, &str); 9] = [
        (0x40, "HW heat"),
        (0x80, "brake"),
        (0x20, "heat"),
        (0x8, "HW slow"),
        (0x4, "power"),
        (0x10, "sync"),
        (0x2, "chosen"),
        (0x100, "display"),
        (0x1, "idle"),
    ];
    let known = REASONS.iter().find(|(bit, _)| bits & bit != 0).map(|(_, word)| *word);
    known.unwrap_or(if bits == 0 { "-" } else { "other" })
}

/// The GPUs of which anything was read, by rank and device.
pub fn gpus(timeline: &Timeline, histories: &Histories, bins: Bins, last_ns: i64) -> Vec<Gpu> {
    let mut found: BTreeMap<(u32, &str), (Gpu, i64)> = BTreeMap::new();
    for (counter, history) in timeline.counters.iter().zip(histories.all()) {
        let (Some((device, sensor)), Some((time_ns, value))) = (Sensor::of(&counter.name), history.newest) else {
            continue;
        };
        let (gpu, newest) = found.entry((counter.rank, device)).or_insert_with(|| {
            let (device, mig) = (device.to_owned(), device.contains('.'));
            (Gpu { device, rank: counter.rank, mig, ..Gpu::default() }, i64::MIN)
        });
        gpu.now.insert(sensor, value);
        gpu.curves.insert(sensor, bridged(history.curve(), bins.parts(BRIDGED)));
        *newest = time_ns.max(*newest);
    }
    let mut gpus: Vec<Gpu> = Vec::new();
    for (mut gpu, newest) in found.into_values() {
        gpu.lost = last_ns.saturating_sub(newest) > LOST.as_nanos() as i64;
        // The sampler says so once, when it begins.
        let divided = |text: &str| text.strip_prefix(gpu.device.as_str()).is_some_and(|rest| rest.contains("(MIG)"));
        gpu.mig |= timeline.marks.iter().any(|mark| divided(&mark.text));
        gpus.push(gpu);
    }
    gpus.sort_by(|a, b| (a.rank, number(&a.device), &a.device).cmp(&(b.rank, number(&b.device), &b.device)));
    gpus
}

/// `cuda:10` comes after `cuda:9`.
pub fn number(device: &str) -> Option<u32> {
    device.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_names_its_device_and_its_sensor() {
        assert_eq!(Sensor::of("gpu.cuda:0.power.limit"), Some(("cuda:0", Sensor::PowerLimit)));
        assert_eq!(Sensor::of("gpu.nvml:0.1.power"), Some(("nvml:0.1", Sensor::Power)));
        assert_eq!(Sensor::of("gpu.cuda:0.energy"), None);
        assert_eq!(Sensor::of("thread.gpu.cpu"), None);
    }

    #[test]
    fn the_most_telling_reason_is_named() {
        assert_eq!([0, 1, 4, 0x44, 0x21, 1 << 40].map(reason), ["-", "idle", "power", "HW heat", "heat", "other"]);
    }
}
