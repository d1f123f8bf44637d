//! What a run's timing stream says about its GPUs: when their clocks were held down, and by which driver.

use crate::gpu::throttle::is_slowed;
use crate::passes::{Take, Taking, settled};
use crate::sorted::Sorted;
use dflash_timeline::record::{Anchor, CounterId, Mark, Sample};
use dflash_timeline::{ReadOptions, RunDir, Timeline};

/// A stretch of time in which a device's clocks were held down, nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spell {
    pub rank: u32,
    pub device: String,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Gpus {
    /// `None` if no GPU's throttling was read.
    pub spells: Option<Vec<Spell>>,
    pub driver: Option<String>,
}

impl Gpus {
    /// Reads them. A stream that cannot be read leaves them unknown: the comparison itself rests on iterations.csv.
    pub(super) fn of_run(run: &RunDir) -> Self {
        let mut looking = Looking::default();
        let all = dflash_timeline::visit(run, &ReadOptions::default(), &mut Taking(&mut looking));
        all.map(|_| looking.finish()).unwrap_or_default()
    }

    #[cfg(test)]
    fn of(timeline: &Timeline) -> Self {
        let mut looking = Looking::default();
        crate::passes::feed(timeline, &mut looking);
        looking.finish()
    }
}

/// Goes through a stream.
#[derive(Debug, Default)]
struct Looking {
    /// The GPU of each counter that tells of throttling.
    counters: Vec<Option<Watched>>,
    sorted: Sorted<Sample>,
    /// The first mark that names the driver.
    driver: Option<(i64, String)>,
    anchors: Vec<Anchor>,
}

#[derive(Debug)]
struct Watched {
    rank: u32,
    device: String,
    /// Whether there was a reading.
    read: bool,
    /// Stretches in which it was slowed, monotonic nanoseconds; the last one goes on while `slowed`.
    spells: Vec<(i64, i64)>,
    slowed: bool,
}

impl Watched {
    fn add(&mut self, sample: &Sample) {
        self.read = true;
        let now = sample.time_ns;
        if let Some((_, end)) = self.spells.last_mut().filter(|_| self.slowed) {
            *end = now;
        }
        let slowed = is_slowed(sample.value);
        if slowed && !self.slowed {
            // The last reading stands for itself.
            self.spells.push((now, now));
        }
        self.slowed = slowed;
    }
}

impl Looking {
    fn finish(mut self) -> Gpus {
        let anchors = settled(self.anchors);
        let counters = &mut self.counters;
        self.sorted.finish(|sample| add(counters, &sample));
        let watched: Vec<Watched> = self.counters.into_iter().flatten().filter(|counter| counter.read).collect();
        let spells = watched.iter().flat_map(|counter| {
            let unix = |ns| to_unix(&anchors, ns);
            counter.spells.iter().filter_map(move |(from, to)| {
                let (rank, device) = (counter.rank, counter.device.clone());
                Some(Spell { rank, device, from_ns: unix(*from)?, to_ns: unix(*to)? })
            })
        });
        Gpus { spells: (!watched.is_empty()).then(|| spells.collect()), driver: self.driver.map(|(_, driver)| driver) }
    }
}

fn add(counters: &mut [Option<Watched>], sample: &Sample) {
    let CounterId(id) = sample.counter;
    if let Some(Some(counter)) = counters.get_mut(id as usize) {
        counter.add(sample);
    }
}

impl Take for Looking {
    fn texts(&mut self, timeline: &Timeline) {
        let known = self.counters.len().min(timeline.counters.len());
        self.counters.extend(timeline.counters[known..].iter().map(|counter| {
            let device = counter.name.strip_prefix("gpu.")?.strip_suffix(".throttle")?.to_owned();
            Some(Watched { rank: counter.rank, device, read: false, spells: Vec::new(), slowed: false })
        }));
    }

    fn sample(&mut self, sample: &Sample) {
        let CounterId(id) = sample.counter;
        let Some(Some(counter)) = self.counters.get(id as usize) else { return };
        if sample.value.is_finite() {
            let (rank, counters) = (counter.rank, &mut self.counters);
            self.sorted.push(rank, sample.time_ns, *sample, |sample| add(counters, &sample));
        }
    }

    fn anchor(&mut self, anchor: &Anchor) {
        self.anchors.push(*anchor);
    }

    fn mark(&mut self, mark: &Mark) {
        if let Some(driver) = driver(&mark.text)
            && self.driver.as_ref().is_none_or(|(known, _)| mark.time_ns < *known)
        {
            self.driver = Some((mark.time_ns, driver));
        }
    }
}

/// By the last anchor before it, else the first.
fn to_unix(anchors: &[Anchor], ns: i64) -> Option<i64> {
    let before = anchors.iter().take_while(|anchor| anchor.monotonic_ns <= ns).last();
    let anchor = before.or(anchors.first())?;
    Some(ns.saturating_add(anchor.realtime_ns.saturating_sub(anchor.monotonic_ns)))
}

/// The sampler's first mark says `NVML (driver 580.159) samples …`.
fn driver(mark: &str) -> Option<String> {
    let rest = mark.strip_prefix("NVML (driver ")?;
    Some(rest.split_once(')')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Gpus, Spell};
    use dflash_timeline::Timeline;
    use dflash_timeline::record::{Anchor, Counter, CounterId, Sample};

    #[test]
    fn a_spell_lasts_from_its_reading_to_the_next() {
        let mut timeline = Timeline::default();
        timeline.anchors.push(Anchor { monotonic_ns: 0, realtime_ns: 1000 });
        timeline.counters.push(Counter { name: "gpu.cuda:0.throttle".into(), unit: "bits".into(), rank: 2 });
        // 1: nothing to do; 4: the power cap, where a GPU that works hard always is; 40: too hot.
        for (time_ns, value) in [(10, 1.0), (20, 64.0), (30, 4.0), (40, 68.0)] {
            timeline.samples.push(Sample { counter: CounterId(0), time_ns, value });
        }
        let spell = |from_ns, to_ns| Spell { rank: 2, device: "cuda:0".into(), from_ns, to_ns };
        assert_eq!(Gpus::of(&timeline).spells, Some(vec![spell(1020, 1030), spell(1040, 1040)]));
        assert_eq!(Gpus::of(&Timeline::default()), Gpus::default());
        assert_eq!(super::driver("NVML (driver 580.159) samples cuda:0"), Some("580.159".into()));
        assert_eq!(super::driver("NVML samples cuda:0"), None);
    }
}
