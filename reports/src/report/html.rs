//! The report as one page: a file of its own, without scripts and without anything from the network.
//!
//! Everything that comes out of a run is escaped; should that ever fail, the page's own content policy forbids scripts and
//! every connection. Charts are small SVG of our own, not a plotting library's: their colours come from the style sheet, so
//! that they follow a dark screen, and their words are HTML, so that they stay readable on a phone.

mod axis;
mod charts;
mod devices;
mod page;
mod plot;
mod tables;
mod training;

use super::{Report, RunFacts};
use crate::error::Result;
use crate::history::History;
use crate::sources::Merged;
use dflash_timeline::{MetricsRow, RunDir, read_metrics};

/// What the page draws beside what the report says.
#[derive(Clone, Debug, Default)]
pub struct Charts {
    /// The course of lanes and counters.
    pub history: History,
    /// metrics.csv of each run that has one, with the run's name.
    pub metrics: Vec<(String, Vec<MetricsRow>)>,
    /// What could not be read, one line each.
    pub problems: Vec<String>,
}

impl Charts {
    /// Gathers them from the runs that the report was gathered from, once more, and from their metrics.csv.
    #[must_use]
    pub fn of(report: &Report, merged: &Merged, runs: &[RunDir]) -> Self {
        let mut charts = Self::default();
        match History::of_runs(merged, &report.stages) {
            Ok(history) => charts.history = history,
            Err(error) => charts.problems.push(error.to_string()),
        }
        for run in runs.iter().filter(|run| run.metrics_csv().exists()) {
            match metrics(run, merged) {
                Ok(rows) => charts.metrics.push((run.name(), rows)),
                Err(error) => charts.problems.push(error.to_string()),
            }
        }
        charts
    }
}

/// The rows that were written in the window.
fn metrics(run: &RunDir, merged: &Merged) -> Result<Vec<MetricsRow>> {
    let (mut rows, window) = (read_metrics(&run.metrics_csv())?, merged.dated()?);
    rows.retain(|row| window.has_time(row.time_ns));
    Ok(rows)
}

/// Writes the page.
#[must_use]
pub fn html(report: &Report, charts: &Charts) -> String {
    let mut page = page::Page::new(&title(report.run.as_ref()));
    page::head(&mut page, report, &charts.problems);
    tables::shares(&mut page, report);
    charts::lanes(&mut page, report, &charts.history);
    training::section(&mut page, charts);
    devices::queues(&mut page, &charts.history);
    devices::gpus(&mut page, &charts.history);
    tables::stages(&mut page, report);
    tables::others(&mut page, report);
    page.finish(report)
}

fn title(run: Option<&RunFacts>) -> String {
    run.map_or_else(|| "dflash report".to_owned(), |run| format!("{} · dflash report", run.name))
}
