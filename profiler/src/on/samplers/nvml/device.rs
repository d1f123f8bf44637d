//! One sampled device: what it can answer, whether it still does, and what is said when that changes.

use std::time::Duration;

use dflash_timeline::record::Severity;

use super::asker::Asker;
use super::gpus::{Answer, Fault, Gpus, Query};
use super::throttle::Throttle;
use crate::on::samplers::sink::Sink;

/// A GPU that is lost, or a query that fails, is tried again after so long.
pub(super) const RETRY_EVERY: Duration = Duration::from_secs(60);
/// So many failures in a row are more than bad luck.
const FAILURES: u32 = 3;

/// A GPU under the framework's name.
#[derive(Debug)]
pub(super) struct Device {
    pub name: String,
    pub gpu: usize,
    /// Name, model, UUID and place, for marks.
    pub label: String,
    sensors: Vec<Sensor>,
    /// Queries that the device does not know.
    pub lacks: Vec<Query>,
    /// Set while it is lost: when it is asked again.
    lost_until: Option<Duration>,
    probed: bool,
    throttle: Throttle,
    /// NVLink's bytes so far, and when.
    nvlink: Option<(Duration, Answer)>,
}

/// A query that the device answers, as far as is known.
#[derive(Debug)]
struct Sensor {
    query: Query,
    counters: Vec<(String, &'static str)>,
    failures: u32,
    /// Not asked before; set when it fails for more than a moment.
    rests_until: Option<Duration>,
}

impl Device {
    pub(super) fn new(name: String, gpu: usize, label: String) -> Self {
        Self {
            name,
            gpu,
            label,
            sensors: Vec::new(),
            lacks: Vec::new(),
            lost_until: None,
            probed: false,
            throttle: Throttle::default(),
            nvlink: None,
        }
    }

    /// Asks everything once: the answers are the first readings, and what is not supported is never asked again. PCIe
    /// throughput, which blocks, is left to its own turns.
    pub(super) fn probe<G: Gpus>(&mut self, wanted: &[Query], asker: &mut Asker<G>, sink: &mut dyn Sink) {
        self.sensors = wanted.iter().map(|query| Sensor::new(&self.name, *query)).collect();
        self.lacks.clear();
        for query in wanted.iter().filter(|query| !Query::PCIE.contains(query)) {
            self.read(*query, asker, sink);
            if self.lost_until.is_some() {
                return;
            }
        }
        self.probed = true;
    }

    /// Reads the wanted queries, as far as the device knows them. Of a lost device none, but for the time when it is
    /// tried again.
    pub(super) fn turn<G: Gpus>(&mut self, tier: &[Query], all: &[Query], asker: &mut Asker<G>, sink: &mut dyn Sink) {
        if let Some(until) = self.lost_until {
            if asker.now() < until {
                return;
            }
            self.retry(all, asker, sink);
        }
        for query in tier {
            if self.lost_until.is_some() {
                return;
            }
            self.read(*query, asker, sink);
        }
    }

    /// Whether it answers, as far as is known.
    pub(super) fn lives(&self) -> bool {
        self.lost_until.is_none()
    }

    pub(super) fn knows(&self, query: Query) -> bool {
        self.sensors.iter().any(|sensor| sensor.query == query)
    }

    /// Asks a lost device one thing.
    fn retry<G: Gpus>(&mut self, all: &[Query], asker: &mut Asker<G>, sink: &mut dyn Sink) {
        let first = self.sensors.first().map_or(Query::Memory, |sensor| sensor.query);
        match asker.ask(self.gpu, first) {
            Err(Fault::Lost(_) | Fault::Failed(_)) => self.lost_until = Some(asker.now() + RETRY_EVERY),
            Ok(_) | Err(Fault::Unsupported) => {
                self.lost_until = None;
                sink.mark(Severity::Info, format!("{} answers again", self.label));
                if !self.probed {
                    self.probe(all, asker, sink);
                }
            }
        }
    }

    /// Asks one thing and records the answer.
    fn read<G: Gpus>(&mut self, query: Query, asker: &mut Asker<G>, sink: &mut dyn Sink) {
        let Some(place) = self.sensors.iter().position(|sensor| sensor.query == query) else { return };
        let sensor = &mut self.sensors[place];
        if sensor.rests_until.is_some_and(|until| asker.now() < until) {
            return;
        }
        match asker.ask(self.gpu, query) {
            Ok(answer) => {
                sensor.answered(&self.name, sink);
                self.record(place, answer, asker.now(), sink);
            }
            Err(Fault::Unsupported) => {
                self.sensors.remove(place);
                self.lacks.push(query);
                if self.probed {
                    sink.mark(Severity::Info, format!("{} does not give its {}", self.name, query.words()));
                }
            }
            Err(Fault::Failed(why)) => sensor.failed(&self.name, &why, asker.now(), sink),
            Err(Fault::Lost(why)) => self.lose(&why, asker.now(), sink),
        }
    }

    fn lose(&mut self, why: &str, now: Duration, sink: &mut dyn Sink) {
        self.lost_until = Some(now + RETRY_EVERY);
        let again = RETRY_EVERY.as_secs();
        sink.mark(
            Severity::Warning,
            format!("{} is lost: {why}; nothing of it is sampled, it is tried again each {again} s", self.label),
        );
    }

    fn record(&mut self, place: usize, answer: Answer, now: Duration, sink: &mut dyn Sink) {
        let sensor = &self.sensors[place];
        let values = match sensor.query {
            Query::Nvlink => rate(&mut self.nvlink, answer, now),
            Query::Throttle => {
                let news = self.throttle.news(&self.name, answer[0] as u64, now);
                news.into_iter().for_each(|(severity, text)| sink.mark(severity, text));
                Some(answer)
            }
            _ => Some(answer),
        };
        let Some(values) = values else { return };
        for ((counter, unit), value) in sensor.counters.iter().zip(values) {
            sink.sample(counter, unit, value);
        }
    }
}

impl Sensor {
    fn new(device: &str, query: Query) -> Self {
        let counters = query.series().iter().map(|(end, unit)| (format!("gpu.{device}.{end}"), *unit)).collect();
        Self { query, counters, failures: 0, rests_until: None }
    }

    fn answered(&mut self, device: &str, sink: &mut dyn Sink) {
        self.failures = 0;
        if self.rests_until.take().is_some() {
            sink.mark(Severity::Info, format!("{device} gives its {} again", self.query.words()));
        }
    }

    fn failed(&mut self, device: &str, why: &str, now: Duration, sink: &mut dyn Sink) {
        self.failures += 1;
        if self.failures < FAILURES {
            return;
        }
        if self.rests_until.replace(now + RETRY_EVERY).is_none() {
            let (what, again) = (self.query.words(), RETRY_EVERY.as_secs());
            let text = format!("{device} does not give its {what}: {why}; it is asked again each {again} s");
            sink.mark(Severity::Warning, text);
        }
    }
}

/// What was moved since the last answer, by second; nothing if that is not known or the GPU began to count anew.
fn rate(last: &mut Option<(Duration, Answer)>, total: Answer, now: Duration) -> Option<Answer> {
    let (at, before) = last.replace((now, total))?;
    let seconds = now.checked_sub(at)?.as_secs_f64();
    let moved = [total[0] - before[0], total[1] - before[1]];
    (seconds > 0.0 && moved.iter().all(|bytes| *bytes >= 0.0)).then(|| moved.map(|bytes| bytes / seconds))
}
