//! A lane's course: the mean of each stage, and percentiles of whole iterations, piece by piece.

use super::Cut;
use crate::quick::QuickMap;
use crate::share::Share;
use crate::stages::{LaneTable, RESIDUE, StageTable};
use crate::stats::add;
use crate::survey::Survey;
use crate::values::Values;
use crate::walk::{Placed, end_ns};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, NameId};
use std::collections::HashMap;

/// At most this many pieces of a lane, and of all lanes together, as long as each has some.
const MOST_PIECES: u64 = 120;
const MOST_TOGETHER: u64 = 960;
const FEWEST_PIECES: u64 = 24;
/// A piece should hold this many iterations.
const PER_PIECE: u64 = 10;
/// Stages that are shown on their own; the others are one.
const MOST_STAGES: usize = 14;
/// The name of all others together.
const OTHERS: &str = "other stages";

/// A lane's course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneHistory {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// What the times of a piece are of: its stages, `other stages` if there are too many, `residue`.
    pub stages: Vec<String>,
    /// Pieces of time in which training iterations ended.
    pub pieces: Vec<Piece>,
}

/// A piece of a lane's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// Its begin, nanoseconds since the recording's.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// Training iterations that ended in it.
    pub iterations: u64,
    /// Mean host time of an iteration by stage, nanoseconds.
    pub stages: Vec<f64>,
    /// 10th, 25th, 50th, 75th, 90th and 99th percentile of iterations, nanoseconds.
    pub percentiles: [u64; 6],
}

const PERCENTILES: [usize; 6] = [10, 25, 50, 75, 90, 99];

/// The courses of all lanes so far.
pub(super) struct Lanes(Vec<Option<Gathering>>);

impl Lanes {
    pub(super) fn new(timeline: &Timeline, survey: &Survey, stages: &StageTable) -> Self {
        let lanes = (0..timeline.lanes.len()).map(|at| Gathering::new(timeline, survey, stages, LaneId(at as u32)));
        Self(lanes.collect())
    }

    pub(super) fn add(&mut self, iteration: &Iteration, spans: &[Placed<'_>]) {
        if let Some(Some(lane)) = self.0.get_mut(iteration.lane.0 as usize)
            && iteration.kind == Kind::Train
        {
            lane.add(iteration, spans);
        }
    }

    /// Takes over the lanes of another worker.
    pub(super) fn join(&mut self, other: Self, share: Share) {
        let theirs = (0..).map(LaneId).zip(self.0.iter_mut().zip(other.0)).filter(|(id, _)| share.has(*id));
        theirs.for_each(|(_, (own, lane))| *own = lane);
    }

    pub(super) fn finish(self, begin_ns: i64) -> Vec<LaneHistory> {
        let all = self.0.into_iter().flatten();
        let mut done: Vec<(usize, LaneHistory)> = all.map(|lane| (lane.place, lane.finish(begin_ns))).collect();
        done.sort_by_key(|(place, _)| *place);
        done.into_iter().map(|(_, lane)| lane).collect()
    }
}

/// What is known of a lane so far.
struct Gathering {
    /// In the stage table.
    place: usize,
    lane: String,
    rank: u32,
    names: Vec<String>,
    /// Where a stage's time goes; those that are not listed are others.
    slots: QuickMap<NameId, usize>,
    cut: Cut,
    sums: Vec<Vec<u64>>,
    durations: Vec<Values>,
}

impl Gathering {
    fn new(timeline: &Timeline, survey: &Survey, stages: &StageTable, id: LaneId) -> Option<Self> {
        let who = timeline.lane(id)?;
        let place = stages.lanes.iter().position(|lane| lane.lane == who.name && lane.rank == who.rank)?;
        let own = survey.lane(id)?;
        let ((first, last), count) = (own.train_ends?, own.trained);
        let most = (MOST_TOGETHER / stages.lanes.len().max(1) as u64).clamp(FEWEST_PIECES, MOST_PIECES);
        let pieces = (count / PER_PIECE).clamp(1, most) as usize;
        let (names, by_name) = names(&stages.lanes[place]);
        let known = timeline.names.iter().zip(0..);
        let slots = known.filter_map(|(name, id)| Some((NameId(id), *by_name.get(name.as_str())?))).collect();
        let sums = vec![vec![0; names.len()]; pieces];
        let (lane, rank, cut) = (who.name.clone(), who.rank, Cut::new(first, last, pieces));
        Some(Self { place, lane, rank, names, slots, cut, sums, durations: vec![Values::default(); pieces] })
    }

    fn add(&mut self, iteration: &Iteration, spans: &[Placed<'_>]) {
        let piece = self.cut.piece(end_ns(iteration));
        let (sums, residue) = (&mut self.sums[piece], self.names.len() - 1);
        let mut staged = 0;
        for Placed { span, .. } in spans.iter().filter(|placed| placed.span.depth == 0) {
            // Others stand before the residue.
            let slot = self.slots.get(&span.name).copied().unwrap_or(residue.saturating_sub(1));
            add(&mut sums[slot], span.duration_ns);
            add(&mut staged, span.duration_ns);
        }
        add(&mut sums[residue], iteration.duration_ns.saturating_sub(staged));
        self.durations[piece].push(iteration.duration_ns);
    }

    fn finish(self, begin_ns: i64) -> LaneHistory {
        let cut = self.cut;
        let since = |ns: i64| ns.saturating_sub(begin_ns);
        let pieces = self.sums.into_iter().zip(self.durations).enumerate().filter(|(_, (_, all))| !all.is_empty());
        let pieces = pieces.map(|(at, (sums, mut all))| Piece {
            from_ns: since(cut.begin(at)),
            to_ns: since(cut.begin(at + 1)),
            iterations: all.len() as u64,
            stages: sums.into_iter().map(|sum| sum as f64 / all.len() as f64).collect(),
            percentiles: all.percentiles(PERCENTILES),
        });
        LaneHistory { pieces: pieces.collect(), lane: self.lane, rank: self.rank, stages: self.names }
    }
}

/// The stages to show in the table's order, with their places: the longest ones, if there are too many.
fn names(lane: &LaneTable) -> (Vec<String>, HashMap<&str, usize>) {
    let stages = || lane.rows.iter().filter(|row| row.depth == 0 && row.stage != RESIDUE);
    let mut totals: Vec<u64> = stages().map(|row| row.host.total_ns).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let least = if totals.len() > MOST_STAGES { totals[MOST_STAGES - 1] } else { 0 };
    let shown = stages().filter(|row| row.host.total_ns >= least).take(MOST_STAGES);
    let mut names: Vec<String> = shown.map(|row| row.stage.clone()).collect();
    let by_name = lane.rows.iter().filter(|row| row.depth == 0);
    let by_name = by_name.filter_map(|row| {
        let at = names.iter().position(|name| *name == row.stage)?;
        Some((row.stage.as_str(), at))
    });
    let by_name = by_name.collect();
    if totals.len() > names.len() {
        names.push(OTHERS.to_owned());
    }
    names.push(RESIDUE.to_owned());
    (names, by_name)
}
