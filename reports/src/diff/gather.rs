//! Collects the rows of iterations.csv by lane and stage, and checks that they can follow each other.

use super::rows::Row;
use crate::error::{Error, Result};
use crate::stages::TOTAL;
use dflash_timeline::record::Kind;
use std::collections::HashMap;
use std::path::Path;

/// One lane's time in one iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// Which start of the lane: index into [`Gathered::starts`].
    pub start: u32,
    pub iteration: u64,
    pub ns: u64,
}

/// An iteration's own row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub iteration: u64,
    /// Nanoseconds since 1970.
    pub begin_ns: i64,
    pub ns: u64,
}

impl Total {
    /// When it ended, nanoseconds since 1970.
    pub(super) fn end_ns(&self) -> i64 {
        self.begin_ns.saturating_add_unsigned(self.ns)
    }
}

/// One start of one lane: it has a warm-up of its own.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub attempt: u32,
    pub lane: usize,
    /// Of iterations of kind `train`.
    pub totals: Vec<Total>,
    current: Current,
    /// First iteration with a successor but without a row `total`, and its line.
    gap: Option<(u64, u64)>,
    has_totals: bool,
}

/// The iteration whose rows are being read.
#[derive(Debug, Default)]
struct Current {
    iteration: u64,
    line: u64,
    has_total: bool,
    begun: bool,
}

/// One lane of one process.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub rank: u32,
    pub name: String,
    pub device: String,
    stages: HashMap<String, usize>,
}

/// One stage of one lane, of iterations of kind `train`.
#[derive(Debug)]
pub(super) struct Stage {
    pub lane: usize,
    pub name: String,
    pub host: Vec<Timed>,
    pub device: Vec<Timed>,
    last: Option<(u32, u64)>,
}

/// All rows of a run, in the order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub lanes: Vec<Lane>,
    pub starts: Vec<Start>,
    pub stages: Vec<Stage>,
    /// Iterations of other kinds than `train`.
    pub set_apart: u64,
    pub rows: u64,
    lane_index: HashMap<(u32, String), usize>,
    start_index: HashMap<(u32, usize), u32>,
    /// Neighbouring rows are mostly of one lane.
    newest: u32,
}

impl Gathered {
    /// Takes the next row of a file.
    pub(super) fn push(&mut self, path: &Path, row: &Row<'_>) -> Result<()> {
        self.rows += 1;
        let start = self.start_of(row);
        let error = |column, problem| Err(Error::Row { path: path.to_owned(), line: row.line, column, problem });
        let of = &mut self.starts[start as usize];
        if of.current.begun && row.iteration < of.current.iteration {
            let before = of.current.iteration;
            return error("iteration", format!("{} follows {before}; sort the rows by iteration", row.iteration));
        }
        of.enter(row);
        let lane = of.lane;
        let stage = self.stage_of(lane, row.stage);
        let stage = &mut self.stages[stage];
        if stage.last.replace((start, row.iteration)) == Some((start, row.iteration)) {
            let stage = crate::text::harmless(row.stage);
            return error("stage", format!("a second row `{stage}` of iteration {}; remove one", row.iteration));
        }
        if row.kind != Kind::Train {
            self.set_apart += u64::from(row.stage == TOTAL);
            return Ok(());
        }
        let timed = |ns| Timed { start, iteration: row.iteration, ns };
        stage.host.extend(row.host_ns.map(timed));
        stage.device.extend(row.device_ns.map(timed));
        if let (TOTAL, Some(ns)) = (row.stage, row.host_ns) {
            let total = Total { iteration: row.iteration, begin_ns: row.start_ns, ns };
            self.starts[start as usize].totals.push(total);
        }
        Ok(())
    }

    fn start_of(&mut self, row: &Row<'_>) -> u32 {
        if let Some(start) = self.starts.get(self.newest as usize) {
            let lane = &self.lanes[start.lane];
            if (start.attempt, lane.rank, lane.name.as_str()) == (row.attempt, row.rank, row.lane) {
                return self.newest;
            }
        }
        let lane = *self.lane_index.entry((row.rank, row.lane.to_owned())).or_insert_with(|| {
            let (name, device) = (row.lane.to_owned(), row.device.to_owned());
            self.lanes.push(Lane { rank: row.rank, name, device, stages: HashMap::new() });
            self.lanes.len() - 1
        });
        self.newest = *self.start_index.entry((row.attempt, lane)).or_insert_with(|| {
            self.starts.push(Start { attempt: row.attempt, lane, ..Start::default() });
            self.starts.len() as u32 - 1
        });
        self.newest
    }

    fn stage_of(&mut self, lane: usize, name: &str) -> usize {
        let stages = &mut self.lanes[lane].stages;
        if let Some(stage) = stages.get(name) {
            return *stage;
        }
        stages.insert(name.to_owned(), self.stages.len());
        let (host, device) = (Vec::new(), Vec::new());
        self.stages.push(Stage { lane, name: name.to_owned(), host, device, last: None });
        self.stages.len() - 1
    }

    /// Refuses iterations in the middle of a lane that lack their row `total` where others have it.
    pub(super) fn check_totals(&self, path: &Path) -> Result<()> {
        let gaps = self.starts.iter().filter(|start| start.has_totals);
        let Some((start, (iteration, line))) = gaps.filter_map(|start| Some((start, start.gap?))).next() else {
            return Ok(());
        };
        let lane = crate::text::harmless(&self.lanes[start.lane].name);
        let problem =
            format!("iteration {iteration} of lane {lane} has no row `total`; restore it, or remove its rows");
        Err(Error::Row { path: path.to_owned(), line, column: "stage", problem })
    }
}

impl Start {
    fn enter(&mut self, row: &Row<'_>) {
        let current = &mut self.current;
        if !current.begun || row.iteration > current.iteration {
            if current.begun && !current.has_total && self.gap.is_none() {
                self.gap = Some((current.iteration, current.line));
            }
            *current = Current { iteration: row.iteration, line: row.line, has_total: false, begun: true };
        }
        if row.stage == TOTAL {
            current.has_total = true;
            self.has_totals = true;
        }
    }

    /// Whether some iteration has its row `total`.
    pub(super) fn has_totals(&self) -> bool {
        self.has_totals
    }

    /// The last iteration, if its row `total` has not come: it is still going on, or the file is cut.
    pub(super) fn unfinished(&self) -> Option<u64> {
        (self.has_totals && self.current.begun && !self.current.has_total).then_some(self.current.iteration)
    }
}
