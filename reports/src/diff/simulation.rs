//! Does the comparison cry wolf, and does it see the wolf? Simulated runs of 8 lanes × 14 stages.

use super::noise::Noise;
use super::side::{Clock, Key, Observed, RunSeries, Side};
use super::{Call, Options, compare};

const LANES: u32 = 8;
const STAGES: u32 = 14;
const MEAN_NS: f64 = 10e6;

/// Times with a coefficient of variation of 5 %.
struct Simulated {
    iterations: usize,
    rho: f64,
    /// Standard deviation of whole runs, relative.
    run_effect: f64,
    /// Slow-down of stage 3 of lane 5.
    slower: f64,
}

impl Simulated {
    fn side(&self, noise: &mut Noise, runs: usize) -> Side {
        Side { paths: Vec::new(), runs: (0..runs).map(|_| self.run(noise)).collect() }
    }

    fn run(&self, noise: &mut Noise) -> RunSeries {
        let mut run = RunSeries::default();
        let whole = (self.run_effect * noise.normal()).exp();
        for (lane, stage) in (0..LANES).flat_map(|lane| (0..STAGES).map(move |stage| (lane, stage))) {
            let factor = whole * if (lane, stage) == (5, 3) { 1.0 + self.slower } else { 1.0 };
            let time = |value: f64| MEAN_NS * factor * (1.0 + 0.05 * value);
            let values = noise.autoregressive(self.iterations, self.rho).into_iter().map(time).collect();
            let key = Key { rank: 0, lane: lane.to_string(), stage: stage.to_string(), clock: Clock::Host };
            run.keys.push(key.clone());
            run.observed.insert(key, Observed::Series(values));
        }
        run
    }
}

/// Of `pairs` comparisons: how many call anything but the slowed stage regressed, and what is said of that stage.
fn calls(simulated: &Simulated, pairs: u64, runs: usize, options: &Options) -> (u64, Vec<Call>) {
    let same = Simulated { slower: 0.0, ..*simulated };
    let mut red = 0;
    let mut of_slowed = Vec::new();
    for pair in 0..pairs {
        let mut noise = Noise::new(pair + 1);
        let (a, b) = (same.side(&mut noise, runs), simulated.side(&mut noise, runs));
        let comparison = compare(&a, &b, options).expect("the sides have the same stages");
        let slowed = |key: &Key| (key.lane.as_str(), key.stage.as_str()) == ("5", "3");
        red += u64::from(comparison.rows.iter().any(|row| row.call == Call::Regressed && !slowed(&row.key)));
        of_slowed.extend(comparison.rows.iter().filter(|row| slowed(&row.key)).map(|row| row.call));
    }
    (red, of_slowed)
}

fn count(calls: &[Call], wanted: Call) -> usize {
    calls.iter().filter(|call| **call == wanted).count()
}

/// Without the run noise, which would hide what the statistics do.
const BARE: Options = Options { threshold: 0.03, floor_ns: 50_000.0, run_noise: 0.0, alpha: 0.05 };

#[test]
fn identical_runs_are_not_called_different() {
    for rho in [0.0, 0.6, 0.9] {
        let simulated = Simulated { iterations: 500, rho, run_effect: 0.0, slower: 0.0 };
        assert_eq!(calls(&simulated, 10, 1, &BARE).0, 0, "rho {rho}");
    }
    let simulated = Simulated { iterations: 200, rho: 0.3, run_effect: 0.05, slower: 0.0 };
    assert_eq!(calls(&simulated, 10, 3, &BARE).0, 0, "5 % from run to run, 3 runs a side");
}

#[test]
fn a_slower_stage_is_called_and_named() {
    let simulated = Simulated { iterations: 500, rho: 0.6, run_effect: 0.0, slower: 0.08 };
    let (red, of_slowed) = calls(&simulated, 20, 1, &BARE);
    assert_eq!(red, 0);
    assert!(count(&of_slowed, Call::Regressed) >= 17, "{of_slowed:?}");
    let simulated = Simulated { slower: 0.05, ..simulated };
    assert_eq!(count(&calls(&simulated, 20, 1, &BARE).1, Call::NoChange), 0);
}

#[test]
#[ignore = "minutes; prints the rates that docs/measurements.md holds"]
fn rates() {
    for rho in [0.0, 0.3, 0.6, 0.9] {
        let simulated = Simulated { iterations: 500, rho, run_effect: 0.0, slower: 0.0 };
        let default = calls(&simulated, 300, 1, &Options::default()).0;
        let bare = calls(&simulated, 300, 1, &BARE).0;
        eprintln!("identical, rho {rho}: {bare} red of 300 bare, {default} with run noise");
    }
    let simulated = Simulated { iterations: 500, rho: 0.6, run_effect: 0.05, slower: 0.0 };
    eprintln!("5 % run effect, 3 runs a side: {} red of 300", calls(&simulated, 300, 3, &BARE).0);
    for (slower, iterations) in [(0.08, 500), (0.05, 500), (0.05, 3000)] {
        let simulated = Simulated { iterations, rho: 0.6, run_effect: 0.0, slower };
        let of_slowed = calls(&simulated, 100, 1, &BARE).1;
        let (yes, no) = (count(&of_slowed, Call::Regressed), count(&of_slowed, Call::NoChange));
        eprintln!("{slower} slower, {iterations} iterations: {yes} called, {no} no change, of 100");
    }
}
