//! What a training costs by its tokens. Times say something on a quiet machine alone: run it by hand, with
//! `cargo test -p dflash-trainer --release --test pipeline -- --ignored --nocapture linear`.

use crate::support::{Log, config, outcome_of};
use dflash_trainer::pipeline::Text;
use std::time::Instant;

/// So many texts of the same length.
fn texts(count: usize, length: usize) -> Vec<Text> {
    let ids = |i: usize| (0..length).map(|t| ((i * 131 + t * 17) % 380) as i64).collect();
    (0..count).map(|i| Text { ids: ids(i), loss_mask: vec![true; length] }).collect()
}

#[test]
#[ignore = "a bench: it prints times"]
fn cost_grows_linearly_with_tokens() {
    let mut config = config();
    (config.train.steps, config.train.anchors) = (12, 16);
    println!("| tokens a step | ms a step | µs a token |\n|---|---|---|");
    let mut points = Vec::new();
    for batch in [4, 8, 16, 32] {
        config.train.batch = batch;
        let (texts, dir) = (texts(64, 96), tempfile::tempdir().unwrap());
        let mut trials: Vec<f64> = (0..5)
            .map(|_| {
                let began = Instant::now();
                let made = outcome_of(&config, (1, 1), &texts, dir.path(), &Log::default(), &|| false).unwrap();
                began.elapsed().as_secs_f64() * 1e3 / made.steps as f64
            })
            .collect();
        trials.sort_by(f64::total_cmp);
        let tokens = (batch * 96) as f64;
        println!("| {tokens} | {:.2} | {:.2} |", trials[2], trials[2] * 1e3 / tokens);
        points.push((tokens.ln(), trials[2].ln()));
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
