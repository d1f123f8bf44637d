//! iterations.csv files, and times for them.

use dflash_reports::timeline::{IterationRow, IterationsWriter};
use std::path::{Path, PathBuf};

/// Writes iterations.csv for one lane `drafter:0`: stages by name with the times of each iteration, nanoseconds.
pub fn iterations_csv(dir: &Path, name: &str, stages: &[(&str, Vec<f64>)]) -> PathBuf {
    let path = dir.join(name);
    let mut writer = IterationsWriter::open(&path).unwrap();
    for i in 0..stages[0].1.len() {
        let mut total = 0;
        for (stage, times) in stages {
            total += times[i] as u64;
            writer.write(&row(i, stage, times[i] as u64)).unwrap();
        }
        writer.write(&row(i, "residue", 1000)).unwrap();
        writer.write(&row(i, "total", total + 1000)).unwrap();
    }
    writer.flush().unwrap();
    path
}

fn row(iteration: usize, stage: &str, ns: u64) -> IterationRow {
    IterationRow {
        lane: "drafter:0".into(),
        device: "cpu".into(),
        iteration: iteration as u64,
        stage: stage.into(),
        host_ns: Some(ns),
        ..IterationRow::default()
    }
}

/// Reproducible times: mean, coefficient of variation, correlation of neighbours.
pub fn times(seed: u64, n: usize, mean: f64, variation: f64, rho: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let mut value = normal();
    let mut step = || {
        value = rho * value + (1.0 - rho * rho).sqrt() * normal();
        (mean * (1.0 + variation * value)).max(1.0)
    };
    (0..n).map(|_| step()).collect()
}
