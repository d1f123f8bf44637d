//! What a training step of a drafter and a target's forward pass take on a GPU, beside a plain matrix product.
//!
//! `throughput DIR WHAT...`, WHAT being `drafter:SHAPE:BATCH`, `target:SHAPE:BATCH` (SHAPE `8b` or `0.6b`: Qwen3's) or
//! `agree`. Random weights, random hidden states on the device, every token supervised. A timed step ends with a wait for
//! the device. Ten steps more of each drafter are recorded to `DIR` with all instruments on, for `dflash report`. `agree`
//! takes a few steps with our own kernels and with libtorch's operators alone, and shows both.

#![expect(clippy::print_stdout, reason = "a table is what this program is for")]

#[path = "shared/qwen3.rs"]
mod qwen3;

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{Kind, Level, Options, Profiler, begin_iteration};
use dflash_trainer::config::{DeviceChoice, Train};
use dflash_trainer::drafter::{DFlashDrafter, DrafterConfig, Init, Row};
use dflash_trainer::instrument;
use dflash_trainer::pipeline::DrafterStep;
use dflash_trainer::target::Target;
use qwen3::{Shape, VOCABULARY};
use std::path::Path;
use std::time::Instant;
use tch::{Device, Kind as Dtype, Tensor};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, all @ ..] = &arguments[..] else {
        return Err("usage: throughput DIR drafter:SHAPE:BATCH|target:SHAPE:BATCH|agree ...".into());
    };
    let device = dflash_trainer::device::resolve(DeviceChoice::Auto)?;
    for what in all {
        match what.split(':').collect::<Vec<_>>()[..] {
            ["agree"] => agree(device)?,
            ["drafter", name, batch] => drafter(what, Shape::of(name)?, batch.parse()?, device, Path::new(runs))?,
            ["target", name, batch] => target(what, Shape::of(name)?, batch.parse()?, device)?,
            _ => return Err(format!("what is {what}?").into()),
        }
    }
    product(device);
    Ok(())
}

fn drafter(what: &str, shape: Shape, batch: i64, device: Device, runs: &Path) -> Result<(), Error> {
    let mut bench = Bench::new(&shape, batch, device, 0);
    bench.steps(5);
    let mut times: Vec<f64> = (0..20).map(|_| bench.timed(1)).collect();
    say(what, &mut times, shape.tokens * batch);
    let mut times: Vec<f64> = (0..4).map(|_| bench.timed(10) / 10.0).collect();
    say(&format!("{what}, ten without a wait"), &mut times, shape.tokens * batch);
    let mut options = Options::new(RunDir::create(runs, &what.replace(':', "-"), Manifest::default())?);
    options.level = Level::Layers;
    options.bare.pairs = 0;
    let profiler = Profiler::start(options)?;
    let mut lane = profiler.lane("drafter:0", "cuda:0");
    if let Some(allocator) = instrument::allocator(device) {
        lane = lane.allocator(Box::new(allocator));
    }
    {
        let _lane = lane.enter();
        bench.steps(30);
    }
    println!("    recorded: {:?}", profiler.finish());
    Ok(())
}

struct Bench {
    step: DrafterStep,
    taps: Tensor,
    ids: Vec<Vec<i64>>,
    device: Device,
    made: usize,
}

impl Bench {
    fn new(shape: &Shape, batch: i64, device: Device, seed: i64) -> Self {
        let dtype = Dtype::BFloat16;
        let config = DrafterConfig::for_target(&shape.target, &qwen3::drafter());
        let drafter = DFlashDrafter::fresh(&config, Init { seed: 1, final_norm: 1.0 }, dtype, device);
        tch::manual_seed(seed);
        let rows = |n: i64, d: i64| (Tensor::randn([n, d], (Dtype::Float, device)) * 0.02).to_kind(dtype);
        let taps = Tensor::randn([batch, shape.tokens, config.feature_width()], (Dtype::Float, device)).to_kind(dtype);
        let ids = (0..batch).map(|_| {
            let ids = Tensor::randint(VOCABULARY - 1, [shape.tokens], (Dtype::Int64, Device::Cpu));
            Vec::<i64>::try_from(ids).unwrap_or_default()
        });
        let ids = ids.collect();
        let settings = Train { steps: 1 << 20, anchors: shape.anchors, learning_rate: 6e-4, ..Train::default() };
        let shared = (rows(VOCABULARY, shape.target.hidden_size), rows(VOCABULARY, shape.target.hidden_size));
        let mut step = DrafterStep::new(&settings, drafter, shared, std::iter::empty(), 1);
        step.watch_stream();
        Self { step, taps, ids, device, made: 0 }
    }

    fn one(&mut self) -> (Tensor, Option<Tensor>) {
        let mask = vec![true; self.ids[0].len()];
        let rows: Vec<Row<'_>> = self.ids.iter().map(|ids| Row { ids, loss_mask: &mask, ..Row::default() }).collect();
        let iteration = begin_iteration(Kind::Train);
        iteration.tokens((rows.len() * mask.len()) as u64);
        let stepped = self.step.run(&self.taps, &rows, self.made);
        self.made += 1;
        (stepped.loss.mean, stepped.update.map(|update| update.norm))
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            let _ = self.one();
        }
        wait(self.device);
    }

    fn timed(&mut self, count: usize) -> f64 {
        let began = Instant::now();
        self.steps(count);
        began.elapsed().as_secs_f64()
    }
}

fn target(what: &str, shape: Shape, batch: i64, device: Device) -> Result<(), Error> {
    let _guard = tch::no_grad_guard();
    let target = Target::random(shape.target.clone(), Dtype::BFloat16, device)?;
    let taps = dflash_trainer::drafter::target_layer_ids(shape.target.layers as usize, 5);
    let ids = Tensor::randint(VOCABULARY - 1, [batch, shape.tokens], (Dtype::Int64, device));
    let run = || {
        let began = Instant::now();
        let _ = Tensor::cat(&target.features(&ids, &taps, false).taps, -1);
        wait(device);
        began.elapsed().as_secs_f64()
    };
    let _: Vec<f64> = (0..3).map(|_| run()).collect();
    let mut times: Vec<f64> = (0..15).map(|_| run()).collect();
    say(what, &mut times, shape.tokens * batch);
    Ok(())
}

/// Losses and gradient norms of the same steps, in both ways.
fn agree(device: Device) -> Result<(), Error> {
    for own in [true, false] {
        dflash_torch::fused::enable_kernels(own);
        let mut bench = Bench::new(&Shape::of("0.6b")?, 2, device, 5);
        let said: Vec<String> = (0..4)
            .map(|_| {
                let (loss, norm) = bench.one();
                format!("{:.5} {:.5}", loss.double_value(&[]), norm.map_or(f64::NAN, |n| n.double_value(&[])))
            })
            .collect();
        println!("agree: own kernels {own}: loss and gradient norm of 4 steps: {}", said.join(" | "));
    }
    dflash_torch::fused::enable_kernels(true);
    Ok(())
}

fn product(device: Device) {
    let random = || Tensor::randn([8192, 8192], (Dtype::Float, device)).to_kind(Dtype::BFloat16);
    let (a, b) = (random(), random());
    let mut times: Vec<f64> = (0..25)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..4 {
                let _ = a.matmul(&b);
            }
            wait(device);
            began.elapsed().as_secs_f64() / 4.0
        })
        .skip(5)
        .collect();
    times.sort_by(f64::total_cmp);
    let flops = 2.0 * 8192f64.powi(3);
    println!("8192^3 bf16: {:.3} ms, {:.0} TFLOP/s", times[10] * 1e3, flops / times[10] / 1e12);
}

fn wait(device: Device) {
    if let Device::Cuda(index) = device {
        tch::Cuda::synchronize(index as i64);
    }
}

fn say(what: &str, seconds: &mut [f64], tokens: i64) {
    seconds.sort_by(f64::total_cmp);
    let (n, ms) = (seconds.len(), |s: f64| s * 1e3);
    let median = seconds[n / 2];
    println!(
        "{what}: {:.2} ms [{:.2}-{:.2}] (n={n}), {:.0} tokens/s",
        ms(median),
        ms(seconds[0]),
        ms(seconds[n - 1]),
        tokens as f64 / median
    );
}
