//! What the rounds say, as a table.

use super::{Bench, MODES, Round};
use dflash_profiler::timeline::signed_rank::pair_means;

pub(super) fn print(bench: &Bench, shape: &str, rounds: &[Round], stops: &[f64]) {
    let tokens = (bench.ids.len() * bench.steps) as f64;
    println!("{shape}: {} rounds of {} steps, {} tokens a step", rounds.len(), bench.steps, bench.ids.len());
    println!("| mode | blocks | ms a step, median | tokens/s | cost of tokens/s by t | by signed ranks |");
    println!("|---|---|---|---|---|---|");
    for (mode, (_, name)) in MODES.iter().enumerate() {
        let mut seconds: Vec<f64> = rounds.iter().filter_map(|r| r[mode]).collect();
        seconds.sort_by(f64::total_cmp);
        let Some(&median) = seconds.get(seconds.len() / 2) else { continue };
        let ratios: Vec<f64> = rounds.iter().filter_map(|r| Some((r[mode]? / r[0]?).ln())).collect();
        let cost = [interval(&ratios), ranked(&ratios)].map(|interval| {
            // A step that takes r times as long makes 1 / r of the tokens.
            let percent = |log: f64| (1.0 - (-log).exp()) * 100.0;
            interval.map_or("–".to_owned(), |(low, centre, high)| {
                format!("{:.2} % ({:.2} … {:.2})", percent(centre), percent(low), percent(high))
            })
        });
        let n = seconds.len();
        let (ms, rate) = (median / bench.steps as f64 * 1e3, tokens / median);
        println!("| {name} | {n} | {ms:.2} | {rate:.0} | {} | {} |", cost[0], cost[1]);
    }
    if !stops.is_empty() {
        let (sum, most) = (stops.iter().sum::<f64>(), stops.iter().fold(0.0, |a: f64, b| a.max(*b)));
        println!("kineto's stop and export: mean {:.2} s, longest {most:.2} s", sum / stops.len() as f64);
    }
}

/// Mean of the values with its 95 % interval by Student's t.
fn interval(values: &[f64]) -> Option<(f64, f64, f64)> {
    let n = values.len() as f64;
    if n < 3.0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // Cornish-Fisher's expansion of t's 97.5 % point: within 1 % from 3 degrees of freedom on.
    let (z, f) = (1.959_964_f64, n - 1.0);
    let t = z + (z.powi(3) + z) / (4.0 * f) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * f * f);
    let half = t * (variance / n).sqrt();
    Some((mean - half, mean, mean + half))
}

/// Hodges and Lehmann's centre of the values with its 95 % interval by signed ranks: what few far values cannot move.
fn ranked(values: &[f64]) -> Option<(f64, f64, f64)> {
    let n = values.len();
    if n < 10 {
        return None;
    }
    let means = pair_means(values);
    let f = n as f64;
    let low = f * (f + 1.0) / 4.0 - 1.959_964 * (f * (f + 1.0) * (2.0 * f + 1.0) / 24.0).sqrt();
    let low = low.max(0.0) as usize;
    Some((means[low], means[means.len() / 2], means[means.len() - 1 - low]))
}
