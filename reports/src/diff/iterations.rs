//! Series from iterations.csv: kinds, throttled and unfinished iterations set apart, warm-up cut.

use super::gather::{Gathered, Start, Timed, Total};
use super::select::Select;
use super::side::{Clock, Cut, Key, LaneMeans, Observed, RunSeries};
use super::throttle::Spell;
use super::{rows, warmup};
use crate::error::{Error, Result};
use crate::stages::TOTAL;
use dflash_timeline::iterations::IterationsFile;
use std::collections::HashSet;
use std::path::Path;

/// Reads the files of one iterations.csv, oldest first; `path` is the newest.
pub(super) fn read(path: &Path, files: Vec<IterationsFile>, select: &Select) -> Result<(Gathered, Vec<String>)> {
    let (mut gathered, mut notes) = (Gathered::default(), Vec::new());
    for file in files {
        let path = file.path().to_owned();
        notes.extend(rows::for_each(file, |row| match select.has(row.rank, row.lane) {
            true => gathered.push(&path, row),
            false => Ok(()),
        })?);
    }
    gathered.check_totals(path)?;
    if gathered.rows == 0 {
        return Err(Error::Empty { path: path.to_owned(), what: select.lacks("it holds no iteration") });
    }
    Ok((gathered, notes))
}

/// What is left out of one start of a lane.
#[derive(Default)]
struct Dropped {
    /// Iterations before this one: the warm-up.
    before: u64,
    iterations: HashSet<u64>,
}

/// Cuts warm-ups, sets apart what is throttled, and lays out each stage's times in order.
pub(super) fn series(path: &Path, gathered: Gathered, spells: Option<&[Spell]>, select: &Select) -> Result<RunSeries> {
    let mut run = RunSeries { set_apart: gathered.set_apart, ..RunSeries::default() };
    run.throttled = spells.map(|_| 0);
    let within = select.window(&gathered);
    let dropped: Vec<Dropped> =
        gathered.starts.iter().map(|start| dropped(path, &gathered, start, spells, within, &mut run)).collect();
    let with_totals: HashSet<usize> =
        gathered.starts.iter().filter(|start| start.has_totals()).map(|start| start.lane).collect();
    for (_, lane) in gathered.lanes.iter().enumerate().filter(|(i, _)| !with_totals.contains(i)) {
        let name = crate::text::harmless(&lane.name);
        run.notes.push(format!(
            "{}: lane {name} has no row `total`; the file may be cut, and no warm-up was cut",
            path.display()
        ));
    }
    let kept = |timed: &&Timed| {
        let dropped = &dropped[timed.start as usize];
        timed.iteration >= dropped.before && !dropped.iterations.contains(&timed.iteration)
    };
    run.lanes = gathered.lanes.iter().map(|lane| LaneMeans::new(lane.rank, &lane.name)).collect();
    for stage in &gathered.stages {
        let lane = &gathered.lanes[stage.lane];
        for (clock, times) in [(Clock::Host, &stage.host), (Clock::Device, &stage.device)] {
            let values: Vec<f64> = times.iter().filter(kept).map(|timed| timed.ns as f64).collect();
            if values.is_empty() {
                continue;
            }
            if clock == Clock::Host {
                run.lanes[stage.lane].add(&stage.name, values.iter().sum(), values.len());
            }
            let key = Key { rank: lane.rank, lane: lane.name.clone(), stage: stage.name.clone(), clock };
            run.keys.push(key.clone());
            run.observed.insert(key, Observed::Series(values));
        }
    }
    if run.keys.is_empty() {
        let what = select.lacks("it holds no iteration of kind `train` to compare");
        return Err(Error::Empty { path: path.to_owned(), what });
    }
    Ok(run)
}

fn dropped(
    path: &Path,
    gathered: &Gathered,
    start: &Start,
    spells: Option<&[Spell]>,
    (from_ns, to_ns): (i64, i64),
    run: &mut RunSeries,
) -> Dropped {
    let lane = &gathered.lanes[start.lane];
    let mut dropped = Dropped::default();
    if let Some(iteration) = start.unfinished() {
        dropped.iterations.insert(iteration);
        let name = crate::text::harmless(&lane.name);
        run.notes
            .push(format!("{}: iteration {iteration} of lane {name} is not complete and was left out", path.display()));
    }
    let (inside, outside): (Vec<&Total>, Vec<&Total>) =
        start.totals.iter().partition(|total| (from_ns..to_ns).contains(&total.end_ns()));
    dropped.iterations.extend(outside.iter().map(|total| total.iteration));
    let mine = |spell: &&Spell| spell.rank == lane.rank && spell.device == lane.device;
    let spells: Vec<&Spell> = spells.unwrap_or_default().iter().filter(mine).collect();
    let (slow, steady): (Vec<&Total>, Vec<&Total>) = inside.iter().partition(|total| throttled(total, &spells));
    let steady = if slow.len() > steady.len() {
        let name = crate::text::harmless(&lane.name);
        run.notes.push(format!(
            "{}: clocks were held down in {} of {} iterations of lane {name}, too many to set apart; they were kept",
            path.display(),
            slow.len(),
            inside.len()
        ));
        inside
    } else {
        dropped.iterations.extend(slow.iter().map(|total| total.iteration));
        run.throttled = run.throttled.map(|count| count + slow.len() as u64);
        steady
    };
    let cut = warmup::cut(&steady.iter().map(|total| total.ns as f64).collect::<Vec<_>>());
    dropped.before = steady.get(cut).map_or(0, |total| total.iteration);
    if !steady.is_empty() {
        let (name, lane) = (path.display().to_string(), lane.name.clone());
        let (rank, attempt) = (gathered.lanes[start.lane].rank, start.attempt);
        run.cuts.push(Cut { run: name, rank, lane, attempt, cut, of: steady.len() });
    }
    dropped
}

/// Whether an iteration meets a spell. Spells are in order of time.
fn throttled(total: &Total, spells: &[&Spell]) -> bool {
    let first = spells.partition_point(|spell| spell.to_ns < total.begin_ns);
    spells.get(first).is_some_and(|spell| spell.from_ns <= total.end_ns())
}

impl LaneMeans {
    fn add(&mut self, stage: &str, sum_ns: f64, count: usize) {
        if stage == TOTAL {
            self.iterations = count;
        }
        self.sums.push((stage.to_owned(), sum_ns));
    }
}
