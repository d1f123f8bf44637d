//! A simulated world: stages last as long as the configuration says and compute nothing; queues, lanes, spans and their
//! device times are the real ones.

mod clockwork;
mod drafter;
mod gpu;
mod sensors;
mod target;

use super::crew::{self, Crew, TargetWorker};
use super::observe::Observer;
use super::parts::{Stop, Text};
use super::run::{across, among};
use super::scene::Scene;
use super::shared::Among;
use super::work::{Load, World};
use crate::config::{AsyncPostprocess, Config, DeviceChoice, Sim as Settings};
use crate::error::TrainError;
use crate::events::MetricsLog;
use crate::ranks::Ranks;
use clockwork::Clockwork;
use dflash_profiler::Profiler;
use dflash_profiler::timeline::record::Severity;
use drafter::Learner;
use gpu::Gpus;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use target::{Fresh, Packed, Poster, Reader};
use tch::Device;

/// What a simulation is made of.
pub struct Simulation<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Records the spans.
    pub profiler: &'a Profiler,
    /// Watches.
    pub observer: &'a dyn Observer,
    /// Gets the metrics; loss and accuracy are not known. On other ranks than 0 there are none.
    pub metrics: Option<MetricsLog>,
    /// As [`Parts::ranks`](super::Parts::ranks).
    pub ranks: Option<(Arc<Ranks>, Among)>,
    /// Asked now and then; true ends it early.
    pub stop: Stop<'a>,
}

/// What came of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Steps made.
    pub steps: usize,
    /// Context tokens a second over the whole loop.
    pub tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub loop_seconds: Vec<(String, f64)>,
}

/// The world.
pub(super) struct Sim;

impl World for Sim {
    type Ids = ();
    type Fresh = Fresh;
    type Packed = Packed;
    /// When the hidden states are where the drafter takes them from, true nanoseconds.
    type Taps = i64;
    type Load = Loader;
    type Target = Reader;
    type Post = Poster;
    type Drafter = Learner;
}

/// The loader's work.
pub(super) struct Loader(Clockwork);

impl Load<Sim> for Loader {
    fn read(&mut self) -> Result<(), String> {
        self.0.iteration()?;
        self.0.on_host("load.read")
    }

    fn pack(&mut self, _: &[&[i64]]) -> Result<(), String> {
        self.0.on_host("load.pack")
    }
}

/// Runs a simulation until its steps are made, `stop` is set, or a lane fails.
///
/// # Errors
/// [`TrainError::Lane`] names the lane that failed first, and why.
pub fn simulate(simulation: Simulation<'_>) -> Result<Simulated, TrainError> {
    let Simulation { config, profiler, observer, metrics, ranks, stop } = simulation;
    profiler.mark(Severity::Info, "all devices are simulated: nothing here was measured on a device");
    let among = among(ranks.as_ref(), config.pipeline.drafters().len());
    let across = across(ranks, config.pipeline.reduce, Device::Cpu, (profiler, observer))?;
    let samples = texts(&config.sim, config.run.seed);
    let ended = Arc::new(AtomicBool::new(false));
    let end = || ended.store(true, Ordering::Relaxed);
    let (targets, drafters) = (config.pipeline.targets(), config.pipeline.drafters());
    let scene = Scene {
        config,
        samples: &samples,
        profiler,
        observer,
        first: 0,
        attempt: 1,
        targets: targets.len(),
        drafters: drafters.len(),
        among,
        on_gpu: true,
        token_bytes: config.sim.token_bytes,
        also: &end,
    };
    let shared = scene.shared::<Sim>();
    let mut gpus = Gpus::default();
    let clockwork = |lane: String| Clockwork::new(&config.sim, config.run.seed, lane, Arc::clone(&ended));
    let crew = crew(config, &samples, (&targets, &drafters), &mut gpus, &clockwork, profiler);
    let make = |name: &str, device: &str| profiler.lane(name, device);
    let worked = std::thread::scope(|scope| {
        let watched = scope.spawn(|| sensors::watch(&gpus, profiler, &ended));
        let worked = crew::work(&shared, crew, scene.order(), (across, metrics), stop, &make);
        end();
        watched.thread().unpark();
        worked
    })?;
    Ok(Simulated { steps: worked.steps, tokens_per_s: worked.tokens_per_s, loop_seconds: worked.loop_seconds })
}

fn crew(
    config: &Config,
    samples: &[Text],
    (targets, drafters): (&[DeviceChoice], &[DeviceChoice]),
    gpus: &mut Gpus,
    clockwork: &dyn Fn(String) -> Clockwork,
    profiler: &Profiler,
) -> Crew<Sim> {
    let lengths: Arc<[u64]> = samples.iter().map(|text| text.ids.len() as u64).collect();
    let own_stream = config.pipeline.async_postprocess != AsyncPostprocess::Off;
    let worker = |(index, &device): (usize, &DeviceChoice)| {
        let gpu = gpus.get(device);
        let post = if own_stream { format!("post:{index}") } else { format!("target:{index} post") };
        TargetWorker {
            device: gpu.name.clone(),
            target: Reader { clockwork: clockwork(format!("target:{index}")), gpu: Arc::clone(&gpu), stream: None },
            post: Poster {
                clockwork: clockwork(post),
                gpu,
                own_stream,
                token_bytes: config.sim.token_bytes,
                lengths: Arc::clone(&lengths),
            },
        }
    };
    let targets = targets.iter().enumerate().map(worker).collect();
    let drafter = |(index, &device): (usize, &DeviceChoice)| {
        let gpu = gpus.get(device);
        let work =
            Learner::new(clockwork(format!("drafter:{index}")), Arc::clone(&gpu), Arc::clone(&lengths), profiler);
        (gpu.name.clone(), work)
    };
    let drafters = drafters.iter().enumerate().map(drafter).collect();
    Crew { loader: Loader(clockwork("loader".to_owned())), targets, drafters }
}

/// Texts of which only the lengths matter.
fn texts(settings: &Settings, seed: u64) -> Vec<Text> {
    let mut rng = StdRng::seed_from_u64(seed);
    let text = |length: usize| Text { ids: vec![0; length], loss_mask: vec![true; length], ..Text::default() };
    (0..settings.samples).map(|_| text(rng.random_range(settings.shortest..=settings.longest))).collect()
}
