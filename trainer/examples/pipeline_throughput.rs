//! What the whole pipeline does on GPUs, with random weights and random texts: `pipeline_throughput DIR SHAPE BATCH DEPTH
//! STEPS TRANSPORT`, SHAPE being `8b` or `0.6b` (Qwen3's), TRANSPORT `host` or `peer`. The target is on the first GPU, the
//! drafter on the last one. Every token is supervised. The run is recorded to `DIR` with all instruments on, for
//! `dflash report`.

#![expect(clippy::print_stdout, reason = "a table is what this program is for")]

#[path = "shared/qwen3.rs"]
mod qwen3;

use dflash_profiler::timeline::{Manifest, MetricsWriter, RunDir};
use dflash_profiler::{Options, Profiler};
use dflash_trainer::config::{Config, DeviceChoice, FeatureCache, Transport};
use dflash_trainer::drafter::{DFlashDrafter, DrafterConfig, Init};
use dflash_trainer::pipeline::{LaneReport, Observer, Parts, Saving, Step, Text, run};
use dflash_trainer::target::{Target, TargetConfig};
use qwen3::{Shape, VOCABULARY};
use std::path::Path;
use tch::{Device, Kind, Tensor};

type Error = Box<dyn std::error::Error>;

const USAGE: &str = "usage: pipeline_throughput DIR 8b|0.6b BATCH DEPTH STEPS host|peer";

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, shape, batch, depth, steps, transport] = &arguments[..] else { return Err(USAGE.into()) };
    let shape = Shape::of(shape)?;
    let mut config = Config::default();
    (config.train.batch, config.train.steps, config.train.anchors) = (batch.parse()?, steps.parse()?, shape.anchors);
    config.drafter = qwen3::drafter();
    (config.pipeline.hs_queue, config.pipeline.batch_queue) = (depth.parse()?, depth.parse()?);
    config.pipeline.feature_cache = FeatureCache::Off;
    config.pipeline.transport = if transport == "peer" { Transport::Peer } else { Transport::Host };
    config.profile.log_every = 10;
    train(&config, Path::new(dir), &shape.target(), shape.tokens)
}

fn train(config: &Config, dir: &Path, target: &TargetConfig, tokens: i64) -> Result<(), Error> {
    let first = dflash_trainer::device::resolve(DeviceChoice::Auto)?;
    let last = if first.is_cuda() { Device::Cuda(dflash_torch::gpu_count() - 1) } else { first };
    let shape = DrafterConfig::for_target(target, &config.drafter);
    let run_dir = RunDir::create(dir, "pipeline", Manifest::default())?;
    let metrics = MetricsWriter::open(&run_dir.path().join("metrics.csv"), config.drafter.block_size - 1)?;
    // A file where the checkpoints' directory would be: what is measured leaves no gigabytes behind, only a warning.
    let checkpoints = run_dir.path().join("no-checkpoints");
    std::fs::write(&checkpoints, "")?;
    let profiler = Profiler::start(Options::new(run_dir))?;
    let outcome = run(Parts {
        config,
        samples: &texts(tokens),
        targets: vec![Target::random(target.clone(), Kind::BFloat16, first)?],
        drafter: DFlashDrafter::fresh(&shape, Init { seed: 1, final_norm: 1.0 }, Kind::BFloat16, last),
        drafter_devices: vec![last],
        profiler: &profiler,
        checkpoints: &checkpoints.join("none"),
        saving: Saving { attempt: 1, batches_per_step: 1, ..Saving::default() },
        resume: None,
        held_out: None,
        features: None,
        observer: &Printer,
        metrics: metrics.into(),
        stop: &|| false,
    })?;
    println!("{first:?} to {last:?}: {} steps, {:.0} tokens/s, warm-up included", outcome.steps, outcome.tokens_per_s);
    println!("recorded: {:?}", profiler.finish());
    Ok(())
}

/// Prints what is read back.
struct Printer;

impl Observer for Printer {
    fn step(&self, step: &Step) {
        if let Some(loss) = step.loss {
            println!(
                "step {}: {:.0} tokens/s, loss {loss:.3}, {}",
                step.step,
                step.tokens_per_s.unwrap_or_default(),
                step.waiting
            );
        }
    }

    fn lane(&self, report: &LaneReport) {
        let stages: Vec<_> = report.stages.iter().map(|stage| format!("{stage:?}")).collect();
        println!("    {}: {}", report.lane, stages.join(" "));
    }

    fn note(&self, text: &str) {
        println!("{text}");
    }
}

fn texts(tokens: i64) -> Vec<Text> {
    let text = |_| {
        let ids = Tensor::randint(VOCABULARY - 1, [tokens], (Kind::Int64, Device::Cpu));
        let ids = Vec::<i64>::try_from(ids).unwrap_or_default();
        Text { loss_mask: vec![true; ids.len()], ids, ..Text::default() }
    };
    (0..64).map(text).collect()
}
