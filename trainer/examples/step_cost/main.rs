//! What instrumentation costs a training step on a GPU, and what torch's own profiler costs the same step.
//!
//! `step_cost SHAPE ROUNDS STEPS DIR [fine|pairs|often [WARM]]`: a drafter of Qwen3's shapes (`8b` or `0.6b`) learns from
//! random hidden states. A round times `STEPS` steps in each mode, in random order: `off` (no profiler), `stages` and `layers`
//! (everything on: spans, device times, allocator, NVML and process samplers, writer), and in every fourth round `kineto`
//! (torch's profiler, CPU and CUDA). Each block's first `WARM` steps (a quarter of `STEPS`; with `fine` 1) are not timed: a
//! training begins its profiler once, not every few steps.
//!
//! - `fine`: one profiler runs throughout and the level changes behind each timed step, for steps whose time wanders more
//!   between blocks than instrumentation costs. What the resting threads of the profiler cost is not in it.
//! - `pairs`: a round is four short blocks, off, stages, stages, off or the other way round, each with a profiler of its own
//!   or none at all: what drifts in a line cancels out, and everything is in it.
//! - `often`: as `pairs`, and what the profiler's threads do from time to time they do `OFTEN` times as often (NVML five
//!   times, for more it refuses). Where that costs little, a fraction of it is what they cost in a training.
//!
//! Recordings go to `DIR`. Prints a table in Markdown: tokens/s, and the cost of each mode with its 95 % interval over the
//! rounds.

#![expect(clippy::print_stdout, reason = "a table is what this program is for")]

mod shape;
mod table;

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{KernelCapture, Kind, Lane, Level, Options, Profiler, begin_iteration, set_level, span};
use dflash_trainer::config::{DeviceChoice, Train};
use dflash_trainer::drafter::{DFlashDrafter, Init, Row};
use dflash_trainer::instrument;
use dflash_trainer::pipeline::DrafterStep;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use shape::config;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tch::{Device, Kind as Dtype, Tensor};

type Error = Box<dyn std::error::Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    Stages,
    Layers,
    Kineto,
}

const MODES: [(Mode, &str); 4] =
    [(Mode::Off, "off"), (Mode::Stages, "stages"), (Mode::Layers, "layers"), (Mode::Kineto, "kineto")];

const WAYS: [&str; 3] = ["fine", "pairs", "often"];

/// By how much the periods of a profiler's threads are divided.
const OFTEN: u32 = 20;

/// What is trained, and on what.
struct Bench {
    step: DrafterStep,
    taps: Tensor,
    ids: Vec<i64>,
    device: Device,
    made: usize,
    steps: usize,
    /// Steps before those that are timed.
    warm: usize,
    /// Whether a profiler's threads work as often as `OFTEN` says.
    often: bool,
    runs: PathBuf,
}

/// Seconds of each mode in one round; `None`: not in this round.
type Round = [Option<f64>; MODES.len()];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (arguments, way, warm) = match &arguments[..] {
        [rest @ .., last] if WAYS.contains(&last.as_str()) => (rest, last.as_str(), None),
        [rest @ .., way, warm] if WAYS.contains(&way.as_str()) => (rest, way.as_str(), Some(warm.parse()?)),
        all => (all, "blocks", None),
    };
    let [shape, rounds, steps, runs] = arguments else {
        return Err("usage: step_cost 8b|0.6b ROUNDS STEPS DIR [fine|pairs|often [WARM]]".into());
    };
    let (rounds, steps): (usize, usize) = (rounds.parse()?, steps.parse()?);
    let device = dflash_trainer::device::resolve(DeviceChoice::Auto)?;
    let mut bench = Bench::new(shape, device, steps, Path::new(runs))?;
    bench.often = way == "often";
    bench.warm = warm.unwrap_or(if way == "fine" { 1 } else { bench.warm });
    for _ in 0..5 {
        bench.steps(3);
    }
    let mut stops = Vec::new();
    let all = match way {
        "fine" => bench.fine(rounds)?,
        "pairs" | "often" => bench.pairs(rounds)?,
        _ => bench.blocks(rounds, &mut stops)?,
    };
    table::print(&bench, shape, &all, &stops);
    Ok(())
}

impl Bench {
    fn new(shape: &str, device: Device, steps: usize, runs: &Path) -> Result<Self, Error> {
        let (config, tokens, anchors) = match shape {
            "8b" => (config(4096, 12288, 32, 36), 3072, 512),
            "0.6b" => (config(1024, 3072, 16, 28), 512, 64),
            "tiny" => (config(64, 128, 4, 8), 96, 8),
            other => return Err(format!("no shape {other}: 8b, 0.6b or tiny").into()),
        };
        let dtype = if device.is_cuda() { Dtype::BFloat16 } else { Dtype::Float };
        let rows = |n: i64, d: i64| (Tensor::randn([n, d], (Dtype::Float, device)) * 0.02).to_kind(dtype);
        let (vocabulary, width) = (config.vocab_size, config.hidden_size);
        let taps = Tensor::randn([1, tokens, config.feature_width()], (Dtype::Float, device)).to_kind(dtype);
        let ids = Vec::<i64>::try_from(Tensor::randint(vocabulary - 1, [tokens], (Dtype::Int64, Device::Cpu)))?;
        let drafter = DFlashDrafter::fresh(&config, Init { seed: 1, final_norm: 1.0 }, dtype, device);
        let settings = Train { steps: 1 << 20, anchors, learning_rate: 1e-5, ..Train::default() };
        let head = (rows(vocabulary, width), rows(vocabulary, width));
        let mut step = DrafterStep::new(&settings, drafter, head, std::iter::empty(), 1);
        step.watch_stream();
        let (warm, runs) = ((steps / 4).max(1), runs.to_owned());
        Ok(Self { step, taps, ids, device, made: 0, steps, warm, often: false, runs })
    }

    /// Rounds of blocks, each with a profiler of its own.
    fn blocks(&mut self, rounds: usize, stops: &mut Vec<f64>) -> Result<Vec<Round>, Error> {
        let mut rng = StdRng::seed_from_u64(7);
        let mut all = Vec::new();
        for round in 0..rounds {
            let takes_part = |mode: &usize| MODES[*mode].0 != Mode::Kineto || round % 4 == 0;
            let mut order: Vec<usize> = (0..MODES.len()).filter(takes_part).collect();
            order.shuffle(&mut rng);
            let mut seconds = Round::default();
            for mode in order {
                seconds[mode] = Some(self.block(MODES[mode].0, round, stops)?);
            }
            all.push(seconds);
        }
        Ok(all)
    }

    /// Rounds of four blocks, of which the inner two are alike, and the outer two.
    fn pairs(&mut self, rounds: usize) -> Result<Vec<Round>, Error> {
        let mut rng = StdRng::seed_from_u64(7);
        let mut all = Vec::new();
        for round in 0..rounds {
            let outer = rng.random_bool(0.5);
            let mut seconds = [0.0; 2];
            for recorded in [outer, !outer, !outer, outer] {
                let mode = if recorded { Mode::Stages } else { Mode::Off };
                seconds[usize::from(recorded)] += self.block(mode, round, &mut Vec::new())? / 2.0;
            }
            let ms = seconds.map(|seconds| seconds / self.steps as f64 * 1e3);
            println!("round {round}: off {:.3} ms, stages {:.3} ms a step", ms[0], ms[1]);
            all.push([Some(seconds[0]), Some(seconds[1]), None, None]);
        }
        Ok(all)
    }

    /// Rounds of single steps under one profiler.
    fn fine(&mut self, rounds: usize) -> Result<Vec<Round>, Error> {
        self.steps = 1;
        let mut rng = StdRng::seed_from_u64(7);
        let (profiler, lane) = self.profiler(Level::Stages, "fine")?;
        let mut all = Vec::new();
        {
            let _lane = lane.enter();
            for _ in 0..rounds {
                let mut order = [(0, Level::Off), (1, Level::Stages), (2, Level::Layers)];
                order.shuffle(&mut rng);
                let mut seconds = Round::default();
                for (mode, level) in order {
                    set_level(level);
                    seconds[mode] = Some(self.timed());
                }
                all.push(seconds);
            }
        }
        whole(&profiler)?;
        Ok(all)
    }

    /// One mode's block: seconds of its steps.
    fn block(&mut self, mode: Mode, round: usize, stops: &mut Vec<f64>) -> Result<f64, Error> {
        match mode {
            Mode::Off => Ok(self.timed()),
            Mode::Stages => self.recorded(Level::Stages, round),
            Mode::Layers => self.recorded(Level::Layers, round),
            Mode::Kineto => {
                let tracer = instrument::KinetoCapture::new();
                tracer.start()?;
                let seconds = self.timed();
                let began = Instant::now();
                tracer.stop(&self.runs.join(format!("kineto-{}.json", self.made)))?;
                stops.push(began.elapsed().as_secs_f64());
                Ok(seconds)
            }
        }
    }

    /// With everything on, as in a training.
    fn recorded(&mut self, level: Level, round: usize) -> Result<f64, Error> {
        let (profiler, lane) = self.profiler(level, &format!("{level:?}-{round}").to_lowercase())?;
        let seconds = {
            let _lane = lane.enter();
            self.timed()
        };
        whole(&profiler)?;
        Ok(seconds)
    }

    fn profiler(&self, level: Level, name: &str) -> Result<(Profiler, Lane), Error> {
        let mut options = Options::new(RunDir::create(&self.runs, name, Manifest::default())?);
        options.level = level;
        // The rounds are the measurement, and nothing may change the level but they.
        options.bare.pairs = 0;
        if self.often {
            for period in [&mut options.write_every, &mut options.device.poll_every, &mut options.device.anchor_every] {
                *period /= OFTEN;
            }
            options.sample_every = options.sample_every.map(|period| period / OFTEN);
            options.nvml.every = options.nvml.every.map(|period| period / 5);
            options.nvml.slow_every /= OFTEN;
        }
        let profiler = Profiler::start(options)?;
        let mut lane = profiler.lane("drafter:0", if self.device.is_cuda() { "cuda:0" } else { "cpu" });
        if let Some(allocator) = instrument::allocator(self.device) {
            lane = lane.allocator(Box::new(allocator));
        }
        Ok((profiler, lane))
    }

    /// A few steps that are not timed; then the block.
    fn timed(&mut self) -> f64 {
        self.steps(self.warm);
        let began = Instant::now();
        self.steps(self.steps);
        began.elapsed().as_secs_f64()
    }

    fn steps(&mut self, count: usize) {
        let mask = vec![true; self.ids.len()];
        for _ in 0..count {
            let iteration = begin_iteration(Kind::Train);
            iteration.tokens(self.ids.len() as u64);
            self.step.run(&self.taps, &[Row { ids: &self.ids, loss_mask: &mask, ..Row::default() }], self.made);
            self.made += 1;
        }
        let _span = span!("sync.block");
        if let Device::Cuda(index) = self.device {
            tch::Cuda::synchronize(index as i64);
        }
    }
}

/// Ends a recording, which must have lost nothing.
fn whole(profiler: &Profiler) -> Result<(), Error> {
    let totals = profiler.finish();
    if totals.dropped + totals.unresolved > 0 || profiler.trouble().is_some() {
        return Err(format!("the recording is not whole: {totals:?} {:?}", profiler.trouble()).into());
    }
    Ok(())
}
