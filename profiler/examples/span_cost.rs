//! Prints what a span costs on this machine: nanoseconds above the empty loop, median of rounds, on and off.

#![expect(clippy::print_stdout, reason = "an example that measures has to say what it found")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{Kind, Level, Options, Profiler, begin_iteration, set_level, span};

const ROUNDS: usize = 201;
const CALLS: u32 = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("dflash-span-cost-{}", std::process::id()));
    let run = RunDir::create(&directory, "span-cost", Manifest::default())?;
    let mut options = Options::new(run);
    options.level = Level::Layers;
    // These iterations do nothing: what it costs to record them is far above any budget.
    (options.bare.pairs, options.max_overhead) = (0, f64::INFINITY);
    let profiler = Profiler::start(options)?;
    let lane = profiler.lane("bench", "cpu").enter();

    let clock = quanta::Clock::new();
    let empty = median(|i| {
        black_box(i);
    });
    let reads = median(|i| {
        black_box((clock.raw(), i, clock.raw()));
    });
    let spans = [Level::Off, Level::Stages, Level::Layers].map(|level| {
        set_level(level);
        let stage = median(|i| {
            let _span = span!("bench.stage");
            black_box(i);
        });
        let _outer = span!("bench.outer");
        let inner = median(|i| {
            let _span = span!("bench.inner", index = i);
            black_box(i);
        });
        (level, stage - empty, inner - empty)
    });
    set_level(Level::Stages);
    let iteration = median(|i| {
        let guard = begin_iteration(Kind::Train);
        guard.tokens(u64::from(i));
    });

    println!("empty loop          {empty:8.2} ns");
    println!("two raw clock reads {:8.2} ns", reads - empty);
    for (level, stage, inner) in spans {
        println!("level {:14}{stage:8.2} ns a stage, {inner:8.2} ns a span inside it", format!("{level:?}"));
    }
    println!("an iteration        {:8.2} ns", iteration - empty);
    drop(lane);
    println!("{:?}", profiler.finish());
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Median over the rounds of the mean time of a call, nanoseconds. Rounds are shorter than a ring, and the writer gets
/// time to empty it between them, so that no full ring is measured.
fn median(mut call: impl FnMut(u32)) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            (0..CALLS).for_each(&mut call);
            let mean = begin.elapsed().as_nanos() as f64 / f64::from(CALLS);
            std::thread::sleep(std::time::Duration::from_millis(1));
            mean
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
