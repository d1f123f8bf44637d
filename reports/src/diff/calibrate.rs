//! How often the comparison cries wolf on a given run: it is split against itself, many times.
//!
//! Each lane's iterations are cut into equal stretches of neighbours; half of the stretches, drawn at random and the
//! same for all lanes, become side A, the others side B. No split can show a real change, so every alarm is false.

use super::call;
use super::noise::Noise;
use super::select::Select;
use super::side::{Key, Observed, RunSeries, Side};
use super::{Call, Comparison, Options, Outcome, compare};
use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// Stretches that a run is cut into.
const STRETCHES: usize = 20;
/// Iterations that make splitting worth while: ten a stretch.
const NEEDED: usize = STRETCHES * 10;
/// Splits that [`calibrate`] makes by default.
pub const SPLITS: usize = 200;

/// What splitting a run against itself showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The run.
    pub run: String,
    /// When a change counted.
    pub options: Options,
    /// Splits made.
    pub splits: usize,
    /// Tests in each.
    pub tests: usize,
    /// Splits with a stage that is called regressed.
    pub regressed: usize,
    /// Splits with a stage that is called improved.
    pub improved: usize,
    /// Splits that would exit with 1: a regression beyond the run noise.
    pub red: usize,
    /// Splits in which nothing gating was left open.
    pub conclusive: usize,
    /// `regressed` ÷ `splits`.
    pub false_alarm_rate: f64,
    /// Upper end of that rate's one-sided 95 % interval (Wilson).
    pub false_alarm_rate_below: f64,
    /// Stages that were called regressed or improved, with how often, the most frequent first.
    pub alarms: Vec<(String, usize)>,
    /// The first half of the run against the second: a drift shows here.
    pub halves: Outcome,
    /// That comparison in one line.
    pub halves_say: String,
}

/// Splits one run (a directory or an iterations.csv) against itself.
///
/// # Errors
/// As [`Side::read_part`], and [`Error::TooShort`].
pub fn calibrate(path: &Path, select: &Select, options: &Options, splits: usize) -> Result<Calibration> {
    let side = Side::read_part(&[path.to_owned()], select)?;
    let Some(run) = side.runs.into_iter().next() else {
        return Err(Error::TooShort { path: path.to_owned(), needed: NEEDED });
    };
    of_run(&run, path, options, splits)
}

fn of_run(run: &RunSeries, path: &Path, options: &Options, splits: usize) -> Result<Calibration> {
    let long = |observed: &Observed| matches!(observed, Observed::Series(values) if values.len() >= NEEDED);
    if !run.observed.values().any(long) {
        return Err(Error::TooShort { path: path.to_owned(), needed: NEEDED });
    }
    let counts = split(run, options, splits);
    let first: Vec<bool> = (0..STRETCHES).map(|i| i < STRETCHES / 2).collect();
    let halves: Comparison = compare(&part(run, &first, true), &part(run, &first, false), options)?;
    let rate = counts.regressed as f64 / splits.max(1) as f64;
    let mut alarms: Vec<(String, usize)> = counts.alarms.into_iter().collect();
    alarms.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(Calibration {
        run: path.display().to_string(),
        options: *options,
        splits,
        tests: counts.tests,
        regressed: counts.regressed,
        improved: counts.improved,
        red: counts.red,
        conclusive: counts.conclusive,
        false_alarm_rate: rate,
        false_alarm_rate_below: wilson_upper(counts.regressed, splits),
        alarms,
        halves: halves.outcome,
        halves_say: halves.headline(),
    })
}

/// Splits on all cores; what is drawn depends on the split's number alone.
fn split(run: &RunSeries, options: &Options, splits: usize) -> Counts {
    let one = |number: usize| {
        let mut of_a: Vec<bool> = (0..STRETCHES).map(|i| i % 2 == 0).collect();
        Noise::new(number as u64).shuffle(&mut of_a);
        call::rows(&part(run, &of_a, true), &part(run, &of_a, false), options)
    };
    let some = |first: usize, step: usize| {
        (first..splits).step_by(step).fold(Counts::default(), |counts, number| counts.with(&one(number)))
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..cores).map(|first| (first, scope.spawn(move || some(first, cores)))).collect();
        // A thread that ended badly, which counting gives no cause for: its share is done here.
        let parts = handles.into_iter().map(|(first, handle)| handle.join().unwrap_or_else(|_| some(first, cores)));
        parts.fold(Counts::default(), Counts::and)
    })
}

#[derive(Default)]
struct Counts {
    tests: usize,
    regressed: usize,
    improved: usize,
    red: usize,
    conclusive: usize,
    alarms: BTreeMap<String, usize>,
}

impl Counts {
    fn and(mut self, other: Self) -> Self {
        self.tests = self.tests.max(other.tests);
        self.regressed += other.regressed;
        self.improved += other.improved;
        self.red += other.red;
        self.conclusive += other.conclusive;
        other.alarms.into_iter().for_each(|(stage, count)| *self.alarms.entry(stage).or_default() += count);
        self
    }

    fn with(mut self, (rows, tests): &(Vec<super::Row>, usize)) -> Self {
        self.tests = *tests;
        let gating = || rows.iter().filter(|row| row.gates);
        let any =
            |call| gating().any(|row| row.call == call || row.p95.change.as_ref().is_some_and(|c| c.call == call));
        self.regressed += usize::from(any(Call::Regressed));
        self.improved += usize::from(any(Call::Improved));
        self.red += usize::from(Outcome::of(rows) == Outcome::Regressed);
        self.conclusive += usize::from(gating().all(|row| row.call != Call::Inconclusive));
        let called = |row: &&super::Row| {
            let p95 = row.p95.change.as_ref().map(|change| change.call);
            [Some(row.call), p95].iter().any(|c| matches!(c, Some(Call::Regressed | Call::Improved)))
        };
        for row in gating().filter(called) {
            *self.alarms.entry(super::forms::name(row)).or_default() += 1;
        }
        self
    }
}

/// The stretches of a run that belong to one side.
fn part(run: &RunSeries, of_a: &[bool], wanted: bool) -> Side {
    let take = |values: &[f64]| {
        let stretch = |i: usize| i * of_a.len() / values.len();
        let mine = values.iter().enumerate().filter(|(i, _)| of_a[stretch(*i)] == wanted);
        mine.map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let observed = |key: &Key| match run.observed.get(key) {
        Some(Observed::Series(values)) => Some((key.clone(), Observed::Series(take(values)))),
        _ => None,
    };
    let observed = run.keys.iter().filter_map(observed).collect();
    Side::of(vec![RunSeries { keys: run.keys.clone(), observed, ..RunSeries::default() }])
}

/// Upper end of the one-sided 95 % interval of a rate.
fn wilson_upper(hits: usize, of: usize) -> f64 {
    const Z: f64 = 1.6449;
    if of == 0 {
        return 1.0;
    }
    let (n, rate) = (of as f64, hits as f64 / of as f64);
    let middle = rate + Z * Z / (2.0 * n);
    let reach = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle + reach) / (1.0 + Z * Z / n)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{NEEDED, of_run, wilson_upper};
    use crate::diff::noise::Noise;
    use crate::diff::side::{Clock, Key, Observed, RunSeries};
    use crate::diff::{Options, Outcome};
    use std::path::Path;

    fn run(n: usize, drift: f64) -> RunSeries {
        let mut noise = Noise::new(11);
        let mut run = RunSeries::default();
        for stage in ["drafter.loss", "drafter.step"] {
            let key = Key { rank: 0, lane: "d".into(), stage: stage.into(), clock: Clock::Host };
            let time = |(i, v): (usize, f64)| 10e6 * (1.0 + 0.05 * v + drift * i as f64 / n as f64);
            let values = noise.autoregressive(n, 0.6).into_iter().enumerate().map(time).collect();
            run.keys.push(key.clone());
            run.observed.insert(key, Observed::Series(values));
        }
        run
    }

    #[test]
    fn a_steady_run_gives_no_alarm_and_a_drifting_one_shows_in_its_halves() {
        let Ok(found) = of_run(&run(1000, 0.0), Path::new("x"), &Options::default(), 50) else { panic!("long enough") };
        assert_eq!((found.regressed, found.improved, found.tests), (0, 0, 4), "{found:?}");
        assert_eq!(found.halves, Outcome::Fine, "{found:?}");
        assert!(found.table().starts_with("false-alarm rate 0.0 % (0 of 50 splits of x"), "{}", found.table());
        let Ok(found) = of_run(&run(1000, 0.6), Path::new("x"), &Options::default(), 50) else { panic!("long enough") };
        assert_ne!(found.halves, Outcome::Fine);
        assert!(found.regressed <= 2, "half of a drift is on either side: {found:?}");
    }

    #[test]
    fn a_short_run_is_refused() {
        assert!(of_run(&run(NEEDED - 1, 0.0), Path::new("x"), &Options::default(), 5).is_err());
    }

    #[test]
    fn wilson_by_hand() {
        // Rule of three, roughly: 2.7 / n with no hit.
        assert!((wilson_upper(0, 100) - 0.026_3).abs() < 1e-3, "{}", wilson_upper(0, 100));
        assert!((wilson_upper(10, 20) - 0.673).abs() < 2e-2, "{}", wilson_upper(10, 20));
        assert!((wilson_upper(0, 0) - 1.0).abs() < 1e-12);
    }
}
