//! Everything that `dflash report` says about a run, gathered once; the forms below print it.

mod cost;
mod csv;
mod facts;
mod figures;
mod gather;
mod html;
mod markdown;
mod paired;
mod rows;
mod sections;
mod signed_rank;
mod table;
mod warnings;

pub(crate) use self::cost::says;
pub use self::cost::{BareLane, Cost, MarkRow, MeasuredLane};
pub use self::csv::{STAGES_HEADER, stages_csv};
pub(crate) use self::facts::number;
pub use self::facts::{RunFacts, Throughput};
pub use self::figures::{FIGURES_HEADER, figures_csv};
pub use self::html::{Charts, html};
pub(crate) use self::markdown::escaped;
pub use self::markdown::markdown;
pub use self::paired::{FEWEST_PAIRS, Interval};
pub use self::rows::{Exported, iterations_csv};
pub use self::table::table;

use self::gather::Gather;
use crate::allocator::Allocator;
use crate::error::Result;
use crate::gaps::LaneGaps;
use crate::goodput::Goodput;
use crate::gpu::Gpu;
use crate::handoffs::Handoffs;
use crate::kernels::Capture;
use crate::limiting::{LimitingLane, limiting};
use crate::passes::feed;
use crate::queues::QueueRow;
use crate::samples::CpuSamples;
use crate::share::{Share, halves};
use crate::sources::{Merged, Place};
use crate::stages::{StageTable, Window};
use crate::stragglers::Peer;
use crate::survey::Survey;
use crate::verdict::Verdict;
use crate::window::{Clock, Scope, Selection};
use dflash_timeline::record::Totals;
use dflash_timeline::{RunDir, Timeline};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// A run in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// What the manifest says, of several runs the first one's; `None` of a bare timeline.
    pub run: Option<RunFacts>,
    /// What the others' say, where several runs are looked at as one.
    pub other_runs: Vec<RunFacts>,
    /// Where several runs stand on one clock; empty of one run.
    pub places: Vec<Place>,
    /// What part is looked at.
    pub scope: Scope,
    /// Tokens and time.
    pub throughput: Throughput,
    /// Which side limits.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub verdict_text: String,
    /// Where each lane's time went.
    pub stages: StageTable,
    /// How much of the drafters' time trained; `None` if no iteration was recorded.
    pub goodput: Option<Goodput>,
    /// Lanes that have peers, and which of them hold the others up; empty where each role has one lane.
    pub peers: Vec<Peer>,
    /// How full the queues were.
    pub queues: Vec<QueueRow>,
    /// How old items are when they are taken, and who waits.
    pub handoffs: Handoffs,
    /// What was lost.
    pub losses: Losses,
    /// What the profiler itself cost.
    pub profiler: Cost,
    /// The caching allocator of each device; empty if none was read.
    pub allocators: Vec<Allocator>,
    /// The sensors of each GPU; empty if none was read.
    pub gpus: Vec<Gpu>,
    /// Gaps between device spans, of each lane that has device times.
    pub gaps: Vec<LaneGaps>,
    /// Kernel captures; empty if there are none, or of a bare timeline.
    pub captures: Vec<Capture>,
    /// What keeps the devices of the limiting side from working all the time; empty if no side limits.
    pub limiting: Vec<LimitingLane>,
    /// Sampled stacks; `None` if there are none.
    pub cpu_samples: Option<CpuSamples>,
}

/// What was recorded, what was lost, and whether the stream is whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Losses {
    /// Counts by the writer.
    pub totals: Totals,
    /// The same by lane, as far as the stream says.
    pub lanes: Vec<LaneLosses>,
    /// Spans that the reader could not place.
    pub strays: u64,
    /// Iterations whose stages last longer than they do.
    pub overfull: u64,
    /// Records that `keep` has deleted on purpose; they had been written, and are not lost.
    pub expired: u64,
    /// Every rank's stream has its end.
    pub ended: bool,
    /// Damaged blocks.
    pub bad_blocks: u64,
    /// Bytes skipped over.
    pub skipped_bytes: u64,
    /// One line per damage.
    pub problems: Vec<String>,
}

/// What became of one lane's records. `emitted = written + dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneLosses {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Records that it made.
    pub emitted: u64,
    /// Of those, in the stream.
    pub written: u64,
    /// Of those, lost.
    pub dropped: u64,
}

impl Losses {
    fn of(timeline: &Timeline, stages: &StageTable) -> Self {
        let lanes = timeline.lane_totals.iter().filter_map(|totals| {
            let lane = timeline.lane(totals.lane)?;
            let (emitted, written, dropped) = (totals.emitted, totals.written, totals.dropped);
            Some(LaneLosses { lane: lane.name.clone(), rank: lane.rank, emitted, written, dropped })
        });
        Self {
            totals: timeline.totals,
            lanes: lanes.collect(),
            strays: stages.strays,
            overfull: stages.lanes.iter().map(|lane| lane.overfull).sum(),
            expired: timeline.expired.records,
            ended: timeline.health.ended,
            bad_blocks: timeline.health.bad_blocks,
            skipped_bytes: timeline.health.skipped_bytes,
            problems: timeline.health.problems.clone(),
        }
    }
}

impl Report {
    /// Gathers the report of a part of a timeline.
    ///
    /// # Errors
    /// [`Error::NoSuchLane`](crate::Error::NoSuchLane) if the window asks for a lane that the timeline does not have.
    pub fn of(timeline: &Timeline, window: &Window) -> Result<Self> {
        window.check_lanes(timeline)?;
        let survey = Survey::of(timeline, window);
        let mut gather = Gather::new(timeline, window, &survey, Share::ALL);
        feed(timeline, &mut gather);
        let begin = Clock::of(timeline).extent.map(|(begin, _)| begin);
        Ok(gather.report(timeline, begin, survey.extent.map(|(first, _)| first)))
    }

    /// Reads one or several runs: their timelines on one clock, manifests and kernel captures. They go by record by
    /// record, so that memory does not grow with the runs; what comes along can be gone through again, for what a report
    /// cannot hold (charts).
    ///
    /// # Errors
    /// If one of them cannot be read, or the selection asks for what they do not have.
    pub fn of_runs(runs: &[RunDir], selection: &Selection) -> Result<(Self, Merged)> {
        let merged = Merged::open(runs, selection)?;
        let report = gathered(&merged)?;
        let captures = merged.captures()?;
        let mut facts = runs.iter().map(RunFacts::of).collect::<Result<Vec<_>>>()?.into_iter();
        let places = if runs.len() > 1 { merged.places.clone() } else { Vec::new() };
        let run = facts.next();
        let limiting = limiting(&report.verdict, &report.gaps, &captures);
        Ok((Self { run, other_runs: facts.collect(), places, captures, limiting, ..report }, merged))
    }

    /// The report as one JSON object. A number that is not known is `null`.
    ///
    /// # Errors
    /// If serialising fails.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Goes through the runs a second time.
fn gathered(merged: &Merged) -> Result<Report> {
    let (mine, theirs) = halves(|share| {
        let mut gather = merged.with_texts(|timeline| Gather::new(timeline, &merged.window, &merged.survey, share));
        merged.go(&mut gather).map(|()| gather)
    });
    let mut mine = mine?;
    mine.join(theirs?);
    Ok(merged.with_texts(|timeline| mine.report(timeline, merged.begin_ns, merged.first_ns)))
}
