//! Flame graphs: of wall time, every nanosecond of every iteration in one frame, waiting and residue included; of device
//! time, with the gaps by what caused them; and of CPU time, from sampled stacks.
//!
//! Below the root stands one frame per lane (`rank1/target:0` from rank 1 on), or per rank and role, or per role; below it
//! the stages and what is nested in them. Iterations of other kinds than `train` stand under a frame of their own,
//! `[eval]` and the like. Of wall time, the weights of all frames together are the sum of all iterations. Of CPU time, the
//! functions stand below the spans that were open, and weights are numbers of samples.

mod change;
mod cpu;
mod device;
mod folded;
mod pprof;
mod speedscope;
mod stacks;
mod svg;
mod wall;

pub use change::Change;

use crate::error::{Error, Result};
use crate::passes::{Take, Taking, feed};
use crate::scope::Scope;
use crate::sources;
use crate::walk::Window;
use crate::window::Selection;
use dflash_timeline::record::{Kind, LaneId};
use dflash_timeline::{ReadOptions, RunDir, Timeline};
use stacks::{ROOT, Stacks};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the weights are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// Wall time by lane and span, nanoseconds.
    #[default]
    Wall,
    /// Time of the device spans and of the gaps between them, nanoseconds.
    Device,
    /// Samples of the stack; a thread that waits is not sampled.
    Cpu,
}

impl Time {
    /// `wall`, `device` or `CPU`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Device => "device",
            Self::Cpu => "CPU",
        }
    }

    /// `nanoseconds` or `samples`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        if self == Self::Cpu { "samples" } else { "nanoseconds" }
    }
}

/// What stands together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Each lane for itself.
    #[default]
    Lane,
    /// Lanes of one role (`target:0`, `target:1`) of a rank together.
    Rank,
    /// Lanes of one role together, of all ranks.
    Merged,
}

/// What the graph shows, and its words.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which part of the timeline; all by default.
    pub window: Window,
    /// Wall time by default.
    pub time: Time,
    /// By lane by default.
    pub by: By,
    /// Heading. Default: `wall time by lane`.
    pub title: String,
    /// Line below it. Default: none.
    pub subtitle: Option<String>,
    /// Leave out the script that zooms and searches. Default: false.
    pub no_javascript: bool,
}

impl Default for Options {
    fn default() -> Self {
        let title = "wall time by lane".to_owned();
        let (window, time, by) = (Window::default(), Time::Wall, By::Lane);
        Self { window, time, by, title, subtitle: None, no_javascript: false }
    }
}

/// A flame graph, to be drawn or written.
#[derive(Clone, Debug)]
pub struct Graph {
    time: Time,
    stacks: Stacks,
    /// Iterations below a frame: of one kind, of one lane or of those that stand together.
    iterations: BTreeMap<u32, u64>,
}

impl Graph {
    /// The graph of a timeline.
    ///
    /// # Errors
    /// [`Error::NothingRecorded`] if there is no iteration in the window, [`Error::NothingTimed`] if there is no device
    /// time, [`Error::NothingSampled`] if there is no sample; [`Error::NoSuchLane`] and [`Error::NoSuchRank`] if it asks
    /// for what there is not.
    pub fn of(timeline: &Timeline, window: &Window, time: Time, by: By) -> Result<Self> {
        Ok(Self::gather(&Source::Timeline(timeline), window, time, by)?.0)
    }

    /// The graph of a run, and its timeline for what is to be said about it (without its records, where they need not
    /// stand in memory).
    ///
    /// # Errors
    /// As [`of`](Self::of), and if the run cannot be read.
    pub fn of_run(run: &RunDir, selection: &Selection, time: Time, by: By) -> Result<(Self, Timeline)> {
        let (window, options) = sources::part(run, selection)?;
        let (graph, timeline) = Self::gather(&Source::Run(run, &options), &window, time, by)?;
        Ok((graph, timeline.into_owned()))
    }

    fn gather<'a>(source: &Source<'a>, window: &Window, time: Time, by: By) -> Result<(Self, Cow<'a, Timeline>)> {
        let scope = Scope::new(window);
        let (graph, timeline) = match time {
            Time::Wall => {
                let mut wall = wall::Wall::new(scope);
                let timeline = source.go(&mut wall)?;
                (wall.finish(&timeline, by), timeline)
            }
            Time::Device => {
                let mut learnt = device::Learnt::default();
                source.go(&mut learnt)?;
                let mut device = device::Device::new(scope, learnt);
                let timeline = source.go(&mut device)?;
                (device.finish(&timeline, by), timeline)
            }
            Time::Cpu => {
                let mut cpu = cpu::Cpu::new(scope);
                let timeline = source.go(&mut cpu)?;
                (cpu.finish(&timeline, by), timeline)
            }
        };
        source.check(&timeline, window)?;
        if graph.total() > 0 {
            return Ok((graph, timeline));
        }
        let which = if window.lanes.is_empty() { String::new() } else { format!(" on {}", window.lanes.join(", ")) };
        Err(match time {
            Time::Wall => Error::NothingRecorded { which },
            Time::Device => Error::NothingTimed { which },
            Time::Cpu => Error::NothingSampled { which },
        })
    }

    fn new(time: Time) -> Self {
        Self { time, stacks: Stacks::default(), iterations: BTreeMap::new() }
    }

    /// All weights together: nanoseconds, or samples.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.stacks.totals()[ROOT as usize]
    }

    /// The frame below which a lane's iterations of one kind stand.
    fn root(&mut self, timeline: &Timeline, lane: LaneId, kind: Kind, by: By, iterations: u64) -> u32 {
        let (name, rank) = timeline.lane(lane).map_or(("?", 0), |lane| (lane.name.as_str(), lane.rank));
        let role = name.split(':').next().unwrap_or(name);
        let root = match by {
            By::Lane if rank > 0 => self.stacks.on(ROOT, &format!("rank{rank}/{name}")),
            By::Lane => self.stacks.on(ROOT, name),
            By::Rank => {
                let rank = self.stacks.on(ROOT, &format!("rank{rank}"));
                self.stacks.on(rank, role)
            }
            By::Merged => self.stacks.on(ROOT, role),
        };
        let root = match kind {
            Kind::Train => root,
            kind => self.stacks.on(root, &format!("[{}]", kind.as_str())),
        };
        *self.iterations.entry(root).or_default() += iterations;
        root
    }
}

/// Where records come from.
enum Source<'a> {
    Timeline(&'a Timeline),
    /// And what of it is read.
    Run(&'a RunDir, &'a ReadOptions),
}

impl<'a> Source<'a> {
    /// Hands all records over.
    fn go(&self, take: &mut impl Take) -> Result<Cow<'a, Timeline>> {
        match self {
            Self::Timeline(timeline) => {
                feed(timeline, take);
                Ok(Cow::Borrowed(timeline))
            }
            Self::Run(run, options) => Ok(Cow::Owned(dflash_timeline::visit(run, options, &mut Taking(take))?)),
        }
    }

    fn check(&self, timeline: &Timeline, window: &Window) -> Result<()> {
        match self {
            Self::Timeline(_) => window.check_lanes(timeline),
            Self::Run(run, _) => sources::check(run, timeline, window),
        }
    }
}

/// Nanoseconds by folded stack, `lane;stage;child`, or samples by `lane;spans;functions`; sorted by stack.
///
/// # Errors
/// As [`Graph::of`].
pub fn folded(timeline: &Timeline, window: &Window, time: Time) -> Result<BTreeMap<String, u64>> {
    Ok(Graph::of(timeline, window, time, By::Lane)?.folded())
}

/// The folded stacks as lines `stack count`, nanoseconds or samples, for other tools.
///
/// # Errors
/// As [`Graph::of`].
pub fn folded_text(timeline: &Timeline, window: &Window, time: Time) -> Result<String> {
    let mut text = Vec::new();
    Graph::of(timeline, window, time, By::Lane)?.write_folded(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The flame graph as an SVG file that needs no network.
///
/// # Errors
/// As [`Graph::of`], or if inferno cannot draw.
pub fn svg(timeline: &Timeline, options: &Options) -> Result<Vec<u8>> {
    Graph::of(timeline, &options.window, options.time, options.by)?.svg(options)
}
