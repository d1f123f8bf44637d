//! Which part of a run is meant: `--last`, `--window`, `--lane`, `--rank`, the same for every command that reads.

use dflash_reports::window::{Length, Selection, TimeRange};

/// A part of a run; all of it by default.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SelectArg {
    /// Only the last part of what was recorded, such as 60s, 2m or 1h30m
    #[arg(long, value_name = "TIME", conflicts_with = "window")]
    last: Option<Length>,
    /// Only a stretch of time: since the run's start (30s..2m, 10m..), or dates (2026-11-30T12:00:00Z..)
    #[arg(long, value_name = "A..B")]
    window: Option<TimeRange>,
    /// Only this lane, such as drafter:0 (may be given several times)
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,
    /// Only this rank of a run of several processes (may be given several times)
    #[arg(long = "rank", value_name = "RANK")]
    ranks: Vec<u32>,
}

impl SelectArg {
    /// What the library calls it.
    pub fn selection(&self) -> Selection {
        Selection { last: self.last, window: self.window, lanes: self.lanes.clone(), ranks: self.ranks.clone() }
    }
}
