//! What a training costs by its tokens: CPU time of all its threads, which others on the machine disturb less than they do
//! the time that passes. Run it by hand:
//! `cargo test -p dflash-trainer --release --test pipeline -- --ignored --nocapture linear`.

use crate::support::{Log, config, outcome_of};
use dflash_trainer::config::Config;
use dflash_trainer::pipeline::Text;

const LENGTH: usize = 96;
const BATCHES: [usize; 4] = [4, 8, 16, 32];
const ROUNDS: usize = 7;

/// So many texts of the same length.
fn texts(count: usize, length: usize) -> Vec<Text> {
    let ids = |i: usize| (0..length).map(|t| ((i * 131 + t * 17) % 380) as i64).collect();
    (0..count).map(|i| Text { ids: ids(i), loss_mask: vec![true; length], ..Text::default() }).collect()
}

/// CPU time of this process so far, seconds, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may hold spaces; user and system time are the 14th and 15th field of all.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [11, 12].map(|i| fields[i].parse::<f64>().unwrap()).iter().sum::<f64>() / 100.0
}

/// CPU milliseconds of one step.
fn step_ms(config: &Config, texts: &[Text]) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let began = cpu_seconds();
    let made = outcome_of(config, (1, 1), texts, dir.path(), &Log::default(), &|| false).unwrap();
    (cpu_seconds() - began) * 1e3 / made.steps as f64
}

#[test]
#[ignore = "a bench: it prints times"]
fn cost_grows_linearly_with_tokens() {
    let mut config = config();
    (config.train.steps, config.train.anchors) = (12, 16);
    let texts = texts(64, LENGTH);
    let mut trials = BATCHES.map(|_| Vec::new());
    // In turn, so that a slow while of the machine is one for all.
    for _ in 0..ROUNDS {
        for (batch, trials) in BATCHES.iter().zip(&mut trials) {
            config.train.batch = *batch;
            trials.push(step_ms(&config, &texts));
        }
    }
    println!("| tokens a step | CPU ms a step | µs a token |\n|---|---|---|");
    let mut points = Vec::new();
    for (batch, mut trials) in BATCHES.into_iter().zip(trials) {
        trials.sort_by(f64::total_cmp);
        let (tokens, ms) = ((batch * LENGTH) as f64, trials[ROUNDS / 2]);
        println!("| {tokens} | {ms:.2} | {:.2} |", ms * 1e3 / tokens);
        points.push((tokens.ln(), ms.ln()));
    }
    println!("exponent of the cost in the tokens: {:.2} (1: linear)", slope(&points));
}

/// The slope of the straight line that is nearest to the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    both / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}
