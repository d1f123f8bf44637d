//! What the sensors of the GPUs said, from counters `gpu.<device>.<sensor>`.

pub(crate) mod throttle;

pub use self::throttle::Reason;
use self::throttle::throttled;
use crate::counters::{Range, growth, series};
use crate::walk::{self, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Kind, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// The sensors that every report lists, in this order, whether they were read or not.
pub const SENSORS: [&str; 7] =
    ["utilization", "memory.used", "power", "power.limit", "clock.sm", "temperature", "throttle"];
/// The counter of energy, which only grows.
const ENERGY: &str = "energy";

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gpu {
    /// As the counters call it.
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// [`SENSORS`], then those that the list does not know.
    pub sensors: Vec<Sensor>,
    /// Share of the readings with a reason to clock down (a bit of `throttle`) that is neither idling nor chosen.
    pub throttled_share: Option<f64>,
    /// Time with such a reason, each reading held until the next, nanoseconds.
    pub throttled_ns: Option<u64>,
    /// Time by reason; reasons may come together.
    pub throttle_reasons: Vec<Reason>,
    /// Energy from the first reading to the last, joules.
    pub energy_j: Option<f64>,
    /// Energy ÷ context tokens that the drafters of this rank trained on meanwhile, joules.
    pub energy_per_token_j: Option<f64>,
}

/// One sensor of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sensor {
    /// `power`, ….
    pub sensor: String,
    /// Unit of the readings; empty if there are none.
    pub unit: String,
    /// What was read; `None` if nothing was.
    pub range: Option<Range>,
}

/// Sensors whose names hold a point.
const LONG: [&str; 10] = [
    "utilization.memory",
    "memory.used",
    "memory.total",
    "power.limit",
    "clock.sm",
    "clock.memory",
    "nvlink.tx",
    "nvlink.rx",
    "pcie.tx",
    "pcie.rx",
];

/// The device and the sensor of a counter `gpu.<device>.<sensor>`. Both may hold points: a MIG part is called `nvml:3.0`.
pub(crate) fn parts(counter: &str) -> Option<(&str, &str)> {
    let rest = counter.strip_prefix("gpu.")?;
    let known = LONG.iter().find_map(|sensor| Some((rest.strip_suffix(sensor)?.strip_suffix('.')?, sensor.len())));
    match known {
        Some((device, length)) => Some((device, &rest[rest.len() - length..])),
        None => rest.rsplit_once('.'),
    }
}

/// All GPUs of which anything was read, by rank and device.
#[must_use]
pub fn gpus(timeline: &Timeline, window: &Window) -> Vec<Gpu> {
    let mut found: BTreeMap<(u32, &str), Gpu> = BTreeMap::new();
    let read = series(timeline, window, |counter| parts(&counter.name));
    for (counter, (device, sensor), samples) in read {
        let gpu = found.entry((counter.rank, device)).or_insert_with(|| Gpu {
            device: device.to_owned(),
            rank: counter.rank,
            sensors: SENSORS.map(|name| Sensor { sensor: name.to_owned(), ..Sensor::default() }).to_vec(),
            ..Gpu::default()
        });
        if sensor == ENERGY {
            gpu.add_energy(timeline, &counter.unit, &samples);
            continue;
        }
        if sensor == "throttle" {
            let throttled = throttled(&samples);
            (gpu.throttled_share, gpu.throttled_ns) = (Some(throttled.share), throttled.ns);
            gpu.throttle_reasons = throttled.reasons;
        }
        let read = Sensor { sensor: sensor.to_owned(), unit: counter.unit.clone(), range: Range::of(&samples) };
        match gpu.sensors.iter_mut().find(|known| known.sensor == sensor) {
            Some(known) => *known = read,
            None => gpu.sensors.push(read),
        }
    }
    found.into_values().collect()
}

impl Gpu {
    /// Needs two readings, and a unit that is one of energy.
    fn add_energy(&mut self, timeline: &Timeline, unit: &str, samples: &[Sample]) {
        let factor = match unit {
            "J" => 1.0,
            "mJ" => 1e-3,
            _ => return,
        };
        let [first, .., last] = samples else { return };
        let energy = growth(samples) * factor;
        self.energy_j = Some(energy);
        let tokens = tokens(timeline, self.rank, (first.time_ns, last.time_ns));
        self.energy_per_token_j = tokens.filter(|tokens| *tokens > 0).map(|tokens| energy / tokens as f64);
    }
}

/// Tokens of the drafters' iterations that ended in a stretch of time, of every kind that trains.
fn tokens(timeline: &Timeline, rank: u32, (from, to): (i64, i64)) -> Option<u64> {
    let trains = |kind| !matches!(kind, Kind::Eval | Kind::Drain);
    let drafts =
        |lane: &dflash_timeline::record::Lane| lane.rank == rank && lane.name.split(':').next() == Some("drafter");
    let drafters: Vec<bool> = timeline.lanes.iter().map(drafts).collect();
    let inside = timeline.iterations.iter().filter(|i| {
        let end = walk::end_ns(i);
        trains(i.kind) && end > from && end <= to && drafters.get(i.lane.0 as usize) == Some(&true)
    });
    inside.filter_map(|i| i.tokens).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn a_part_of_a_gpu_is_no_sensor() {
        assert_eq!(parts("gpu.cuda:0.power"), Some(("cuda:0", "power")));
        assert_eq!(parts("gpu.cuda:0.power.limit"), Some(("cuda:0", "power.limit")));
        assert_eq!(parts("gpu.nvml:3.0.power"), Some(("nvml:3.0", "power")));
        assert_eq!(parts("gpu.nvml:3.0.memory.used"), Some(("nvml:3.0", "memory.used")));
        assert_eq!((parts("gpu.power"), parts("queue.batches.depth")), (None, None));
    }
}
