//! What a run's timing stream says about its GPUs: when their clocks were held down, and by which driver.

use crate::counters::series;
use crate::gpu::throttle::is_slowed;
use crate::walk::Window;
use dflash_timeline::record::Anchor;
use dflash_timeline::{RunDir, Timeline};

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
        dflash_timeline::read(run).map(|timeline| Self::of(&timeline)).unwrap_or_default()
    }

    fn of(timeline: &Timeline) -> Self {
        let parse = |counter: &dflash_timeline::record::Counter| {
            counter.name.strip_prefix("gpu.")?.strip_suffix(".throttle").map(str::to_owned)
        };
        let read = series(timeline, &Window::default(), parse);
        let mut spells = (!read.is_empty()).then(Vec::new);
        for (counter, device, samples) in read {
            for (i, sample) in samples.iter().enumerate().filter(|(_, sample)| is_slowed(sample.value)) {
                // The last reading stands for itself.
                let end = samples.get(i + 1).map_or(sample.time_ns, |next| next.time_ns);
                let unix = |ns| to_unix(&timeline.anchors, ns);
                if let (Some(spells), Some(from_ns), Some(to_ns)) = (&mut spells, unix(sample.time_ns), unix(end)) {
                    spells.push(Spell { rank: counter.rank, device: device.clone(), from_ns, to_ns });
                }
            }
        }
        Self { spells, driver: timeline.marks.iter().find_map(|mark| driver(&mark.text)) }
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
