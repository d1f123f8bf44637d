//! What the sensors of the GPUs said, from counters `gpu.<device>.<sensor>`.

pub(crate) mod throttle;

pub use self::throttle::Reason;
use crate::counters::{Range, Reading, Readings};
use crate::survey::Survey;
use crate::walk::{self, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{CounterId, Iteration, Kind, LaneId};
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
    let survey = Survey::of_counters(timeline, window);
    let mut tokens = Tokens::new(timeline, &survey);
    timeline.iterations.iter().for_each(|iteration| tokens.add(iteration));
    rows(timeline, &Readings::of(timeline, window, &survey), &tokens)
}

pub(crate) fn rows(timeline: &Timeline, readings: &Readings, tokens: &Tokens) -> Vec<Gpu> {
    let mut found: BTreeMap<(u32, &str), Gpu> = BTreeMap::new();
    for (counter, (device, sensor), reading) in readings.wanted(timeline, |counter| parts(&counter.name)) {
        let gpu = found.entry((counter.rank, device)).or_insert_with(|| Gpu {
            device: device.to_owned(),
            rank: counter.rank,
            sensors: SENSORS.map(|name| Sensor { sensor: name.to_owned(), ..Sensor::default() }).to_vec(),
            ..Gpu::default()
        });
        if sensor == ENERGY {
            gpu.add_energy(&counter.unit, reading, tokens);
            continue;
        }
        if sensor == "throttle" {
            (gpu.throttled_share, gpu.throttled_ns) = (Some(reading.throttled.share()), reading.throttled.ns());
            gpu.throttle_reasons = reading.throttled.reasons();
        }
        let read = Sensor { sensor: sensor.to_owned(), unit: counter.unit.clone(), range: Some(reading.range) };
        match gpu.sensors.iter_mut().find(|known| known.sensor == sensor) {
            Some(known) => *known = read,
            None => gpu.sensors.push(read),
        }
    }
    found.into_values().collect()
}

impl Gpu {
    /// Needs two readings, and a unit that is one of energy.
    fn add_energy(&mut self, unit: &str, reading: &Reading, tokens: &Tokens) {
        let factor = match unit {
            "J" => 1.0,
            "mJ" => 1e-3,
            _ => return,
        };
        if reading.range.readings < 2 {
            return;
        }
        let energy = reading.growth * factor;
        self.energy_j = Some(energy);
        let tokens = tokens.of(reading.first.counter).filter(|tokens| *tokens > 0);
        self.energy_per_token_j = tokens.map(|tokens| energy / tokens as f64);
    }
}

/// Tokens while energy was read: of the drafters' iterations that ended meanwhile, of every kind that trains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    /// Rank of each lane that is a drafter's.
    drafters: Vec<Option<u32>>,
    counters: Vec<Energy>,
}

#[derive(Clone, Debug)]
struct Energy {
    counter: CounterId,
    rank: u32,
    /// First and last reading.
    times: (i64, i64),
    tokens: Option<u64>,
}

impl Tokens {
    pub(crate) fn new(timeline: &Timeline, survey: &Survey) -> Self {
        let drafts = |lane: &dflash_timeline::record::Lane| lane.name.split(':').next() == Some("drafter");
        let drafters = timeline.lanes.iter().map(|lane| drafts(lane).then_some(lane.rank)).collect();
        let counters = (0..).map(CounterId).zip(timeline.counters.iter().zip(&survey.counters));
        let counters = counters.filter_map(|(id, (counter, own))| {
            parts(&counter.name).filter(|(_, sensor)| *sensor == ENERGY)?;
            Some(Energy { counter: id, rank: counter.rank, times: own.times?, tokens: None })
        });
        Self { drafters, counters: counters.collect() }
    }

    /// Takes an iteration, of whatever lane and time.
    pub(crate) fn add(&mut self, iteration: &Iteration) {
        let LaneId(lane) = iteration.lane;
        let Some(Some(rank)) = self.drafters.get(lane as usize) else { return };
        let Some(tokens) = iteration.tokens.filter(|_| !matches!(iteration.kind, Kind::Eval | Kind::Drain)) else {
            return;
        };
        let end = walk::end_ns(iteration);
        for energy in self.counters.iter_mut().filter(|energy| energy.rank == *rank) {
            if end > energy.times.0 && end <= energy.times.1 {
                energy.tokens = Some(energy.tokens.unwrap_or(0).saturating_add(tokens));
            }
        }
    }

    /// Adds what other lanes had.
    pub(crate) fn join(&mut self, other: &Self) {
        for (own, other) in self.counters.iter_mut().zip(&other.counters) {
            own.tokens = own.tokens.into_iter().chain(other.tokens).reduce(u64::saturating_add);
        }
    }

    fn of(&self, counter: CounterId) -> Option<u64> {
        self.counters.iter().find(|energy| energy.counter == counter)?.tokens
    }
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
