//! A machine whose GPUs answer as told, and whose time passes only while it is asked or waited for.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use dflash_timeline::record::Severity;

use crate::NvmlOptions;
use crate::on::samplers::nvml::asker::Clocks;
use crate::on::samplers::nvml::gpus::{Answer, Fault, Gpu, Gpus, Listing, Part, Query};
use crate::on::samplers::nvml::visible::Visible;
use crate::on::samplers::nvml::watch::Watch;
use crate::on::samplers::sink::Sink;
use crate::on::samplers::tests::Readings;

pub const SECOND: Duration = Duration::from_secs(1);

/// A GPU, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Card {
    pub gpu: Gpu,
    pub lacks: Vec<Query>,
    /// When it is lost.
    pub lost: Range<Duration>,
    /// When one query fails.
    pub fails: Vec<(Query, Range<Duration>)>,
    /// Throttle reasons and from when they hold.
    pub throttle: Vec<(Duration, u64)>,
}

/// A whole GPU without faults.
pub fn card(number: u32) -> Card {
    let gpu = Gpu {
        uuid: format!("GPU-{number}{number}{number}{number}"),
        pci: format!("00000000:{number}A:00.0"),
        model: "NVIDIA H200".to_owned(),
        part: Part::Whole,
    };
    Card { gpu, lacks: Vec::new(), lost: Duration::ZERO..Duration::ZERO, fails: Vec::new(), throttle: Vec::new() }
}

/// A MIG device: it knows its memory alone.
pub fn mig(number: u32, of: usize) -> Card {
    let mut card = card(number);
    card.gpu.uuid = format!("MIG-{number}{number}{number}{number}");
    card.gpu.model = "NVIDIA H200 MIG 1g.18gb".to_owned();
    card.gpu.part = Part::Of(of);
    card.lacks =
        Query::FAST.into_iter().chain(Query::SLOW).chain(Query::PCIE).filter(|q| *q != Query::Memory).collect();
    card
}

/// What was asked, when, and of which GPU.
pub type Log = Rc<RefCell<Vec<(Duration, usize, Query)>>>;

#[derive(Clone, Debug)]
pub struct Machine {
    pub cards: Vec<Card>,
    pub now: Rc<Cell<Duration>>,
    pub cpu_ns: Rc<Cell<u64>>,
    pub log: Log,
    pub broken: Option<Fault>,
    /// What each call takes beyond what it takes on an H200.
    pub slower: Duration,
}

impl Machine {
    pub fn new(cards: Vec<Card>) -> Self {
        let (now, cpu_ns, log) = (Rc::default(), Rc::default(), Log::default());
        Self { cards, now, cpu_ns, log, broken: None, slower: Duration::ZERO }
    }

    fn clocks(&self) -> Clocks {
        let (now, cpu_ns) = (Rc::clone(&self.now), Rc::clone(&self.cpu_ns));
        Clocks { now: Box::new(move || now.get()), cpu_ns: Box::new(move || cpu_ns.get()) }
    }

    /// Starts a sampler, each second.
    pub fn start(&self, options: &NvmlOptions, sink: &mut Timed) -> Option<Watch<Self>> {
        let every = options.every.unwrap_or(SECOND);
        Watch::start(self.clone(), self.clocks(), (every, options), &Visible::default(), sink)
    }

    /// Lets a sampler do its turns up to a time.
    pub fn run(&self, watch: &mut Watch<Self>, until: Duration, sink: &mut Timed) {
        loop {
            let next = self.now.get() + watch.rest();
            if next > until {
                break;
            }
            self.now.set(next);
            watch.turn(sink);
        }
        self.now.set(self.now.get().max(until));
    }

    pub fn sink(&self) -> Timed {
        Timed { now: Rc::clone(&self.now), readings: Readings::default(), marks: Vec::new() }
    }

    /// Times at which a GPU was asked something, in milliseconds.
    pub fn asked(&self, gpu: usize, query: Query) -> Vec<u128> {
        let log = self.log.borrow();
        log.iter().filter(|(_, g, q)| (*g, *q) == (gpu, query)).map(|(at, ..)| at.as_millis()).collect()
    }
}

impl Gpus for Machine {
    fn driver(&self) -> Option<String> {
        Some("580.159".to_owned())
    }

    fn list(&mut self) -> Result<Listing, Fault> {
        self.broken.clone().map_or(Ok(()), Err)?;
        Ok(Listing { gpus: self.cards.iter().map(|card| card.gpu.clone()).collect(), problems: Vec::new() })
    }

    fn ask(&mut self, gpu: usize, query: Query) -> Result<Answer, Fault> {
        let now = self.now.get();
        self.log.borrow_mut().push((now, gpu, query));
        self.now.set(now + took(query) + self.slower);
        self.cpu_ns.set(self.cpu_ns.get() + took(query).as_nanos().min(1_000_000) as u64);
        let card = &self.cards[gpu];
        if card.lost.contains(&now) {
            return Err(Fault::Lost("device fell off the bus".to_owned()));
        }
        if card.lacks.contains(&query) {
            return Err(Fault::Unsupported);
        }
        if card.fails.iter().any(|(q, when)| *q == query && when.contains(&now)) {
            return Err(Fault::Failed("an internal driver error occurred".to_owned()));
        }
        Ok(answer(card, query, now.as_secs_f64().round()))
    }
}

/// As on an H200.
fn took(query: Query) -> Duration {
    Duration::from_micros(match query {
        Query::Memory => 70,
        Query::Energy => 3370,
        Query::Nvlink => 1600,
        Query::PcieRx | Query::PcieTx => 20_600,
        _ => 12,
    })
}

fn answer(card: &Card, query: Query, second: f64) -> Answer {
    let one = |value| [value, 0.0];
    match query {
        Query::Utilization => [90.0, 40.0],
        Query::Memory => [1e9 * (1.0 + second), 150e9],
        Query::Power => one(600.0 + second),
        Query::PowerLimit => one(700.0),
        Query::SmClock => one(1980.0),
        Query::MemoryClock => one(3201.0),
        Query::Temperature => one(40.0 + second / 2.0),
        Query::Throttle => {
            let bits = card.throttle.iter().rev().find(|(from, _)| from.as_secs_f64() <= second);
            one(bits.map_or(0.0, |(_, bits)| *bits as f64))
        }
        Query::Energy => one(600.0 * second),
        Query::Nvlink => [2e9 * second, 1e9 * second],
        Query::PcieRx => one(5e9),
        Query::PcieTx => one(6e9),
    }
}

/// Keeps readings, and marks with the second in which they were made.
#[derive(Debug)]
pub struct Timed {
    now: Rc<Cell<Duration>>,
    pub readings: Readings,
    pub marks: Vec<String>,
}

impl Sink for Timed {
    fn sample(&mut self, name: &str, unit: &'static str, value: f64) {
        assert!(value.is_finite(), "{name}");
        self.readings.sample(name, unit, value);
    }

    fn mark(&mut self, severity: Severity, text: String) {
        self.marks.push(format!("{:.1} s {severity:?}: {text}", self.now.get().as_secs_f64()));
    }
}

impl Timed {
    /// Every counter as `name (unit): readings, first … last`.
    pub fn table(&self) -> String {
        let mut names: Vec<_> = self.readings.samples.iter().map(|(name, unit, _)| (name.clone(), *unit)).collect();
        names.sort();
        names.dedup();
        let line = |(name, unit): (String, &str)| {
            let values: Vec<_> = self.readings.samples.iter().filter(|(n, ..)| *n == name).map(|(.., v)| *v).collect();
            format!("{name} ({unit}): {} readings, {:.0} … {:.0}", values.len(), values[0], values[values.len() - 1])
        };
        names.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub fn count(&self, name: &str) -> usize {
        self.readings.samples.iter().filter(|(n, ..)| n == name).count()
    }
}
