//! A simulation, and what it left.

use crate::support::never_stuck;
use dflash_profiler::timeline::{Manifest, MetricsWriter, RunDir, Timeline, read};
use dflash_profiler::{Options, Profiler};
use dflash_trainer::TrainError;
use dflash_trainer::config::Config;
use dflash_trainer::pipeline::{LaneReport, Observer, Simulated, Simulation, Step, simulate};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Mean milliseconds of each lane's stages, and what was said of the waiting.
#[derive(Default)]
pub struct Means {
    stages: Mutex<BTreeMap<(String, String), f64>>,
    pub waiting: Mutex<String>,
}

impl Observer for Means {
    fn step(&self, step: &Step) {
        if !step.waiting.is_empty() {
            self.waiting.lock().unwrap().clone_from(&step.waiting);
        }
    }

    fn lane(&self, report: &LaneReport) {
        for mean in &report.stages {
            self.stages.lock().unwrap().insert((report.lane.clone(), mean.stage.clone()), mean.ms);
        }
    }
}

impl Means {
    pub fn share(&self, lane: &str, stage: &str) -> f64 {
        let stages = self.stages.lock().unwrap();
        let ms = |stage: &str| stages.get(&(lane.to_owned(), stage.to_owned())).copied().unwrap_or_default();
        ms(stage) / ms("total")
    }
}

/// Who records is alone: the level is the process's.
static ALONE: Mutex<()> = Mutex::new(());

/// What a simulation left.
pub struct Ran {
    pub result: Result<Simulated, TrainError>,
    pub means: Means,
    pub timeline: Timeline,
}

pub fn run(config: Config) -> Ran {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    never_stuck(move || {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path(), "sim", Manifest::default()).unwrap();
        let mut options = Options::new(run.clone());
        (options.control, options.nvml.every, options.bare.pairs) = (false, None, 0);
        let profiler = Profiler::start(options).unwrap();
        let means = Means::default();
        let metrics = Some(MetricsWriter::open(&dir.path().join("metrics.csv"), 3).unwrap().into());
        let simulation = Simulation {
            config: &config,
            profiler: &profiler,
            observer: &means,
            metrics,
            ranks: None,
            stop: &|| false,
        };
        let result = simulate(simulation);
        profiler.finish();
        Ran { result, means, timeline: read(&run).unwrap() }
    })
}

impl Ran {
    /// Readings of a counter.
    pub fn readings(&self, name: &str) -> Vec<f64> {
        let counter = self.timeline.counters.iter().position(|counter| counter.name == name);
        let counter = counter.unwrap_or_else(|| panic!("no counter {name}"));
        let own = self.timeline.samples.iter().filter(|sample| sample.counter.0 as usize == counter);
        own.map(|sample| sample.value).collect()
    }

    /// The mean of a counter over the second half of its readings.
    pub fn settled(&self, name: &str) -> f64 {
        let readings = self.readings(name);
        let half = &readings[readings.len() / 2..];
        half.iter().sum::<f64>() / half.len() as f64
    }
}
