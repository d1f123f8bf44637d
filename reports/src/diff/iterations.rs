//! Series from iterations.csv: kinds set apart, order checked, warm-up cut.

use super::side::{Clock, Cut, Key, Observed, RunSeries};
use super::warmup;
use crate::error::{Error, Result};
use crate::stages::TOTAL;
use dflash_timeline::iterations::{IterationRow, read_iterations};
use dflash_timeline::record::Kind;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// One start of one lane: it has a warm-up of its own.
type Start<'a> = (u32, u32, &'a str);

/// Reads iterations.csv.
pub(super) fn read(path: &Path) -> Result<RunSeries> {
    let rows = read_iterations(path)?;
    if rows.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "it holds no iteration" });
    }
    check_order(path, &rows)?;
    let mut run = RunSeries::default();
    let first_steady = cut_warmups(path, &rows, &mut run);
    let mut series = Series::default();
    for row in &rows {
        if row.kind != Kind::Train {
            run.set_apart += u64::from(row.stage == TOTAL);
        } else if first_steady.get(&start_of(row)).is_none_or(|first| row.iteration >= *first) {
            series.push(row, Clock::Host, row.host_ns);
            series.push(row, Clock::Device, row.device_ns);
        }
    }
    for (row, clock, values) in series.all {
        let key = Key { rank: row.rank, lane: row.lane.clone(), stage: row.stage.clone(), clock };
        run.keys.push(key.clone());
        run.observed.insert(key, Observed::Series(values));
    }
    if run.keys.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "it holds no iteration of kind `train`" });
    }
    Ok(run)
}

fn start_of(row: &IterationRow) -> Start<'_> {
    (row.attempt, row.rank, &row.lane)
}

/// Values by lane, stage and clock, in the order of first appearance.
#[derive(Default)]
struct Series<'a> {
    /// The first row says whose they are.
    all: Vec<(&'a IterationRow, Clock, Vec<f64>)>,
    index: HashMap<(u32, &'a str, &'a str, Clock), usize>,
}

impl<'a> Series<'a> {
    fn push(&mut self, row: &'a IterationRow, clock: Clock, ns: Option<u64>) {
        let Some(ns) = ns else { return };
        let at = *self.index.entry((row.rank, &row.lane, &row.stage, clock)).or_insert_with(|| {
            self.all.push((row, clock, Vec::new()));
            self.all.len() - 1
        });
        self.all[at].2.push(ns as f64);
    }
}

/// A lane's iterations must follow each other, each stage once in each. The reader has checked every single field.
fn check_order(path: &Path, rows: &[IterationRow]) -> Result<()> {
    let mut at: HashMap<(u32, u32, &str), (u64, HashSet<&str>)> = HashMap::new();
    for (i, row) in rows.iter().enumerate() {
        // Rows hold no line breaks, and the header is line 1.
        let line = i as u64 + 2;
        let error = |column, problem| Err(Error::Row { path: path.to_owned(), line, column, problem });
        let (iteration, seen) = at.entry((row.attempt, row.rank, &row.lane)).or_default();
        if row.iteration < *iteration {
            return error("iteration", format!("{} follows {iteration}; sort the rows by iteration", row.iteration));
        }
        if row.iteration > *iteration {
            *iteration = row.iteration;
            seen.clear();
        }
        if !seen.insert(&row.stage) {
            return error("stage", format!("a second row `{}` of iteration {iteration}; remove one", row.stage));
        }
    }
    Ok(())
}

/// Decides by the iterations' totals where each lane becomes steady: its first iteration that counts.
fn cut_warmups<'a>(path: &Path, rows: &'a [IterationRow], run: &mut RunSeries) -> HashMap<Start<'a>, u64> {
    let mut starts: Vec<Start<'a>> = Vec::new();
    let mut totals: HashMap<Start<'a>, Vec<(u64, f64)>> = HashMap::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Train && row.stage == TOTAL) {
        let Some(ns) = row.host_ns else { continue };
        let start = start_of(row);
        let values = totals.entry(start).or_insert_with(|| {
            starts.push(start);
            Vec::new()
        });
        values.push((row.iteration, ns as f64));
    }
    let mut first_steady = HashMap::new();
    for start in starts {
        let values = &totals[&start];
        let cut = warmup::cut(&values.iter().map(|(_, ns)| *ns).collect::<Vec<_>>());
        let (attempt, rank, lane) = start;
        let (name, lane) = (path.display().to_string(), lane.to_owned());
        run.cuts.push(Cut { run: name, rank, lane, attempt, cut, of: values.len() });
        if let Some((first, _)) = values.get(cut) {
            first_steady.insert(start, *first);
        }
    }
    first_steady
}
