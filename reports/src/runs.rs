//! The list of runs.

use crate::error::Result;
use crate::report::number;
use crate::text::{Grid, Look, Style, UNKNOWN, duration, grouped, harmless};
use dflash_timeline::{Manifest, RunDir, State, read_metrics};
use serde::Serialize;
use std::path::Path;

/// One run in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// The directory's name.
    pub name: String,
    /// `running`, `finished`, `failed`, `stopped` or `died`.
    pub state: String,
    /// How long it took, or has taken so far. Unknown of a run that died.
    pub length_ns: Option<u64>,
    /// Its result `tokens_per_s`, or else the median of metrics.csv.
    pub tokens_per_s: Option<f64>,
    /// Its result `tau`, the acceptance length.
    pub tau: Option<f64>,
    /// Why its recording stopped before it did, as its ranks have noted it.
    pub trouble: Option<String>,
}

/// The runs of a directory, newest first, and one line for each that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Runs {
    /// Those that could be read.
    pub runs: Vec<RunRow>,
    /// What is wrong with the others.
    pub damaged: Vec<String>,
}

/// Lists the runs of a directory. `now_unix_ns` ends the length of those that go on.
///
/// # Errors
/// If the directory cannot be listed.
pub fn list(parent: &Path, now_unix_ns: i64) -> Result<Runs> {
    let (found, damaged) = RunDir::list_all(parent)?;
    let mut list = Runs { runs: Vec::new(), damaged: damaged.iter().map(ToString::to_string).collect() };
    for run in found {
        match row(&run, now_unix_ns) {
            Ok(row) => list.runs.push(row),
            Err(error) => list.damaged.push(error.to_string()),
        }
    }
    Ok(list)
}

fn row(run: &RunDir, now_unix_ns: i64) -> Result<RunRow> {
    let (manifest, state) = (run.manifest()?, run.state()?);
    let end = manifest.ended_unix_ns.or((state == State::Running).then_some(now_unix_ns));
    Ok(RunRow {
        name: run.name(),
        state: state.as_str().to_owned(),
        length_ns: end.and_then(|end| u64::try_from(end.saturating_sub(manifest.started_unix_ns)).ok()),
        tokens_per_s: tokens_per_s(run, &manifest),
        tau: number(&manifest, "tau"),
        trouble: crate::noted_trouble(run, &manifest),
    })
}

fn tokens_per_s(run: &RunDir, manifest: &Manifest) -> Option<f64> {
    number(manifest, "tokens_per_s").or_else(|| {
        let rows = read_metrics(&run.metrics_csv()).ok()?;
        let mut rates: Vec<f64> =
            rows.iter().filter_map(|row| row.tokens_per_s).filter(|rate| rate.is_finite()).collect();
        rates.sort_by(f64::total_cmp);
        crate::stats::percentile(&rates, 50)
    })
}

impl Runs {
    /// The list as a table for people.
    #[must_use]
    pub fn table(&self, look: Look) -> String {
        let mut grid = Grid::default();
        grid.row(["run", "state", "length", "tokens/s", "tau"], Some(Style::Dim));
        for run in &self.runs {
            let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
            let cells = [
                harmless(&run.name),
                run.state.clone(),
                known(run.length_ns.map(duration)),
                known(run.tokens_per_s.map(|rate| grouped(rate.round() as u64))),
                known(run.tau.map(|tau| format!("{tau:.2}"))),
            ];
            grid.row(cells, style(&run.state));
        }
        let incomplete = self.runs.iter().filter_map(|run| {
            let (name, trouble) = (harmless(&run.name), harmless(run.trouble.as_ref()?));
            Some(format!("{name}: the recording is incomplete: {trouble}\n"))
        });
        let damaged = self.damaged.iter().map(|problem| format!("not readable: {}\n", harmless(problem)));
        grid.text("", false, look)
            + &incomplete.chain(damaged).map(|line| look.paint(Style::Yellow, &line)).collect::<String>()
    }

    /// The list as one JSON object.
    ///
    /// # Errors
    /// If serialising fails.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn style(state: &str) -> Option<Style> {
    match state {
        "running" => Some(Style::Green),
        "failed" | "died" => Some(Style::Red),
        _ => None,
    }
}
