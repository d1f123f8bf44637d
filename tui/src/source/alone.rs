//! Without a run: this machine's GPUs, read here and now into a timeline of their own, so that the same views show them.

use std::time::Instant;

use dflash_reports::timeline::record::{Anchor, Counter, CounterId, Mark, Sample, Severity};
use dflash_reports::timeline::{Manifest, State as RunState, Timeline};

use super::nvml::{Gpus, Reading};
use super::{hostname, now_unix_ns};
use crate::state::{Input, Look, Model};

/// Readings are kept this far back, nanoseconds.
const KEEP_NS: i64 = 600 * 1_000_000_000;

/// The GPUs of this machine.
pub struct AloneSource {
    gpus: Box<dyn Gpus>,
    began: Instant,
    timeline: Timeline,
    manifest: Manifest,
    /// Why there is no run to show.
    why: String,
    problems: Vec<String>,
}

impl AloneSource {
    /// Looks at `gpus`, and says `why` there is no run.
    #[must_use]
    pub fn new(gpus: Box<dyn Gpus>, why: String) -> Self {
        let mut manifest = Manifest::default();
        manifest.host = hostname();
        let anchor = Anchor { monotonic_ns: 0, realtime_ns: now_unix_ns() };
        let timeline = Timeline { anchors: vec![anchor], ..Timeline::default() };
        let mut source = Self { gpus, began: Instant::now(), timeline, manifest, why, problems: Vec::new() };
        source.poll();
        source
    }

    /// Reads every sensor.
    pub fn poll(&mut self) {
        let now_ns = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.problems = vec![self.why.clone()];
        match self.gpus.read() {
            Ok(readings) => readings.into_iter().for_each(|reading| self.add(&reading, now_ns)),
            Err(problem) => self.problems.push(problem),
        }
        self.timeline.samples.retain(|sample| sample.time_ns >= now_ns - KEEP_NS);
    }

    fn add(&mut self, reading: &Reading, time_ns: i64) {
        let known = self.timeline.counters.iter().position(|counter| counter.name == reading.counter);
        let index = known.unwrap_or_else(|| {
            let (name, unit) = (reading.counter.clone(), reading.unit.to_owned());
            self.timeline.counters.push(Counter { name, unit, rank: 0 });
            if let Some(model) = &reading.note {
                let text = model.clone();
                self.timeline.marks.push(Mark { time_ns, severity: Severity::Info, text });
            }
            self.timeline.counters.len() - 1
        });
        let counter = CounterId(u32::try_from(index).unwrap_or(u32::MAX));
        self.timeline.samples.push(Sample { counter, time_ns, value: reading.value });
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        let input = Input {
            name: "",
            manifest: &self.manifest,
            state: RunState::Running,
            here: true,
            timeline: &self.timeline,
            extent_ns: None,
            metrics: &[],
            logged: None,
            problems: &self.problems,
            now_unix_ns: now_unix_ns(),
        };
        Model::new(&input, look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Liveness, Sensor};

    struct Two(f64);

    impl Gpus for Two {
        fn read(&mut self) -> Result<Vec<Reading>, String> {
            self.0 += 1.0;
            let one = |device: &str, value| Reading {
                counter: format!("gpu.{device}.utilization"),
                unit: "%",
                value,
                note: Some(format!("{device}: a test's GPU")),
            };
            Ok(vec![one("nvml:0", self.0), one("nvml:1", 50.0)])
        }
    }

    struct Absent;

    impl Gpus for Absent {
        fn read(&mut self) -> Result<Vec<Reading>, String> {
            Err("no driver".to_owned())
        }
    }

    #[test]
    fn readings_become_gpus_with_a_history() {
        let mut source = AloneSource::new(Box::new(Two(0.0)), "no run".to_owned());
        source.poll();
        let model = source.model(&Look::default());
        assert_eq!((model.gpus.len(), model.run.liveness), (2, Liveness::NoRun));
        assert_eq!(model.gpus[0].now(Sensor::Utilization), Some(2.0));
        assert_eq!(model.gpus[1].now(Sensor::Power), None);
        assert_eq!((model.events.len(), model.losses.problems.len()), (2, 1));
    }

    #[test]
    fn what_keeps_the_gpus_from_being_read_is_said() {
        let model = AloneSource::new(Box::new(Absent), "no run".to_owned()).model(&Look::default());
        assert_eq!(model.losses.problems, ["no run", "no driver"]);
        assert!(model.gpus.is_empty());
    }
}
