//! The short facts of a report: the run and its throughput.

use crate::error::Result;
use crate::stages::StageTable;
use dflash_timeline::RunDir;
use serde::Serialize;

/// What the manifest says about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// The directory's name.
    pub name: String,
    /// `running`, `finished`, ….
    pub state: String,
    /// The machine.
    pub host: String,
    /// Names of the GPUs.
    pub gpus: Vec<String>,
    /// Version of dflash that recorded it.
    pub version: String,
    /// Its commit.
    pub commit: Option<String>,
    /// Acceptance length, if it was measured.
    pub tau: Option<f64>,
    /// Why its recording stopped before the run did; `None`: it did not, as far as is known.
    pub trouble: Option<String>,
    /// How it ended, in words.
    pub outcome: Option<String>,
}

impl RunFacts {
    /// Reads them from the manifest.
    ///
    /// # Errors
    /// If the manifest cannot be read.
    pub fn of(run: &RunDir) -> Result<Self> {
        let (manifest, state) = (run.manifest()?, run.state()?);
        Ok(Self {
            name: run.name(),
            state: state.as_str().to_owned(),
            trouble: crate::trouble(run, &manifest, state),
            tau: number(&manifest, "tau"),
            host: manifest.host,
            gpus: manifest.gpus,
            version: manifest.version,
            commit: manifest.commit,
            outcome: manifest.outcome,
        })
    }
}

/// A result of a run, if it is a number.
pub(crate) fn number(manifest: &dflash_timeline::Manifest, name: &str) -> Option<f64> {
    manifest.results.get(name).and_then(serde_json::Value::as_f64)
}

/// Tokens and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Throughput {
    /// From the begin of the first to the end of the last training iteration of any lane.
    pub wall_ns: Option<u64>,
    /// Context tokens that the drafters trained on, without padding.
    pub tokens: Option<u64>,
    /// Those ÷ the time from the drafters' first begin to their last end, without that of their evaluations.
    pub tokens_per_s: Option<f64>,
}

impl Throughput {
    /// Adds up the lanes.
    #[must_use]
    pub fn of(stages: &StageTable) -> Self {
        let drafters = || stages.lanes.iter().filter(|lane| lane.role() == "drafter");
        let wall_ns = extent(stages.lanes.iter().filter_map(|lane| lane.extent_ns));
        let tokens = drafters().filter_map(|lane| lane.tokens).reduce(u64::saturating_add);
        // Drafters are evaluated together.
        let evaluating = drafters().map(|lane| lane.evaluating_ns).max().unwrap_or(0);
        let drafting = extent(drafters().filter_map(|lane| lane.extent_ns)).map(|ns| ns.saturating_sub(evaluating));
        let drafting = drafting.filter(|ns| *ns > 0);
        let tokens_per_s = tokens.zip(drafting).map(|(tokens, ns)| tokens as f64 * 1e9 / ns as f64);
        Self { wall_ns, tokens, tokens_per_s }
    }
}

fn extent(extents: impl Iterator<Item = (i64, i64)>) -> Option<u64> {
    let whole = extents.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    whole.map(|(begin, end)| end.abs_diff(begin))
}
