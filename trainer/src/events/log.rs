//! Where a training's figures go: metrics.csv, and TensorBoard's event file beside it.

use super::{EventWriter, tags};
use dflash_profiler::timeline::{MetricsRow, MetricsWriter, RunDir};

/// Writes each row to both. One that fails does not keep the other from its row.
#[derive(Debug)]
pub struct MetricsLog {
    csv: MetricsWriter,
    /// `None`: nobody wants them.
    events: Option<Result<EventWriter, String>>,
}

impl MetricsLog {
    /// Opens a run's files, for `slots` drafted tokens.
    ///
    /// # Errors
    /// metrics.csv cannot be appended to. Without an event file the training is no worse: the first row says so.
    pub fn open(run: &RunDir, slots: usize) -> dflash_profiler::timeline::Result<Self> {
        let directory = run.path().join("tensorboard");
        let manifest = run.manifest()?;
        let events = EventWriter::create(&directory, manifest.started_unix_ns as f64 / 1e9, &manifest.host)
            .map_err(|e| format!("{}: {e}", directory.display()));
        Ok(Self { csv: MetricsWriter::open(&run.metrics_csv(), slots)?, events: Some(events) })
    }

    /// Writes a row.
    ///
    /// # Errors
    /// What could not be written, and why.
    pub fn write(&mut self, row: &MetricsRow) -> Result<(), String> {
        let csv = self.csv.write(row).map_err(|e| e.to_string());
        let events = match &mut self.events {
            Some(Ok(events)) => events
                .scalars(row.time_ns as f64 / 1e9, i64::try_from(row.step).unwrap_or(i64::MAX), &tags::scalars(row))
                .map_err(|e| format!("{}: {e}", events.path().display())),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(()),
        };
        csv.and(events)
    }
}

impl From<MetricsWriter> for MetricsLog {
    /// metrics.csv alone.
    fn from(csv: MetricsWriter) -> Self {
        Self { csv, events: None }
    }
}
