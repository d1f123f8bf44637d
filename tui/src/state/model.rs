//! The numbers of one look at a run. All statistics are those of `dflash report`; only curves are added.

use std::time::Duration;

use dflash_reports::report::Throughput;
use dflash_reports::stages::{LaneTable, Window, stage_table};
use dflash_reports::timeline::record::LaneId;
use dflash_reports::timeline::{Manifest, MetricsRow, State as RunState, Timeline};

use super::WindowLength;
use super::counters::Histories;
use super::curves::{curves, total_curve};
use super::event::{self, Event};
use super::gantt::{Gantt, Zoom};
use super::gpu::{self, Gpu};
use super::process::Process;
use super::queues::{self, Queue};
use super::run::{self, Losses, Run};
use super::series::Bins;
use super::thread::{self, Thread};

/// What part of a recording to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    /// How far back the numbers look.
    pub window: WindowLength,
    /// As it was at this moment, monotonic nanoseconds; `None`: at the newest record.
    pub at_ns: Option<i64>,
    /// The stretch that the timeline shows; `None`: it is not shown.
    pub zoom: Option<Zoom>,
}

/// What a look at a run found.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The directory's name.
    pub name: &'a str,
    /// Its run.json.
    pub manifest: &'a Manifest,
    /// Where it stands.
    pub state: RunState,
    /// Whether it runs on this machine, so that its process can be asked.
    pub here: bool,
    /// What was recorded.
    pub timeline: &'a Timeline,
    /// First and last moment that can be looked at, monotonic nanoseconds, where the timeline is only a part of it.
    pub extent_ns: Option<(i64, i64)>,
    /// Rows of metrics.csv, or as many of them as a chart can show.
    pub metrics: &'a [MetricsRow],
    /// How many rows metrics.csv has, if they were counted.
    pub logged: Option<u64>,
    /// Files that could not be read, in words.
    pub problems: &'a [String],
    /// The time, nanoseconds since 1970.
    pub now_unix_ns: i64,
}

/// One lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// `drafter:0`, ….
    pub name: String,
    /// `cpu`, `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Its stage table; `None` while no iteration has ended in the window.
    pub table: Option<LaneTable>,
    /// Milliseconds per iteration over time, of each stage.
    pub curves: Vec<(String, Vec<Option<f64>>)>,
    /// The same of whole iterations.
    pub total_curve: Vec<Option<f64>>,
    /// The innermost span that was open at the newest record, and for how long.
    pub inside: Option<(String, Duration)>,
}

impl Lane {
    /// Training iterations a second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let table = self.table.as_ref()?;
        let (begin, end) = table.extent_ns?;
        let seconds = end.saturating_sub(begin) as f64 / 1e9;
        (table.iterations > 0 && seconds > 0.0).then(|| table.iterations as f64 / seconds)
    }

    /// Share of the time spent waiting for input or for room; `None` if the lane has no stage that waits.
    #[must_use]
    pub fn waiting(&self) -> Option<f64> {
        let waits = |stage: &str| stage.ends_with(".wait") || stage.ends_with(".put");
        let rows = &self.table.as_ref()?.rows;
        rows.iter().filter(|row| row.depth == 0 && waits(&row.stage)).map(|row| row.share).reduce(|a, b| a + b)
    }
}

/// The numbers of one look at a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The run itself.
    pub run: Run,
    /// What is missing from its record.
    pub losses: Losses,
    /// Tokens and time.
    pub throughput: Throughput,
    /// Which side limits, as a sentence.
    pub verdict: String,
    /// All lanes, also those that have not finished an iteration.
    pub lanes: Vec<Lane>,
    /// The queues between them.
    pub queues: Vec<Queue>,
    /// Rows of metrics.csv, oldest first; every n-th of many.
    pub metrics: Vec<MetricsRow>,
    /// How many there are, if they were counted.
    pub logged: Option<u64>,
    /// The GPUs of which anything was read.
    pub gpus: Vec<Gpu>,
    /// Threads that work.
    pub threads: Vec<Thread>,
    /// The training process, and what the profiler costs it.
    pub process: Process,
    /// What happened, newest first.
    pub events: Vec<Event>,
    /// The stretch that the timeline shows, if it is shown.
    pub gantt: Gantt,
    /// How long the window really is.
    pub covered: Option<Duration>,
    /// First and last moment that can be looked at, monotonic nanoseconds.
    pub extent_ns: Option<(i64, i64)>,
    /// From when on there is anything in memory, monotonic nanoseconds.
    pub held_ns: Option<i64>,
    /// The moment that is looked at, monotonic nanoseconds.
    pub at_ns: Option<i64>,
    /// When the first record was made, nanoseconds since 1970, if a clock anchor says so.
    pub begin_unix_ns: Option<i64>,
}

impl Model {
    /// Computes the numbers.
    #[must_use]
    pub fn new(input: &Input, look: &Look) -> Self {
        let timeline = input.timeline;
        let extent = input.extent_ns.or_else(|| extent(timeline));
        let age = extent.and_then(|(_, last)| run::age(timeline, last, input.now_unix_ns));
        let run = Run::new(input.name, input.manifest, (input.state, input.here), age, input.now_unix_ns);
        let mut losses = Losses::new(timeline, run.is_live(), input.manifest.started_unix_ns);
        losses.problems.extend_from_slice(input.problems);
        if let Some(trouble) = &run.trouble {
            losses.problems.insert(0, format!("the recording is incomplete: {trouble}"));
        }
        let (metrics, logged) = (input.metrics.to_vec(), input.logged);
        let mut model = Self { run, losses, metrics, logged, ..Self::default() };
        if let Some((first, newest)) = extent {
            let last = look.at_ns.map_or(newest, |at| at.clamp(first, newest));
            // Of a part, no more can be told than what it holds.
            let held = self::extent(timeline).map_or(first, |(held, _)| held.max(first));
            let from = look.window.nanoseconds().map_or(held, |ns| last.saturating_sub(ns).max(held)).min(last);
            model.covered = Some(Duration::from_nanos(last.abs_diff(from)));
            (model.extent_ns, model.held_ns, model.at_ns) = (extent, Some(held), Some(last));
            model.begin_unix_ns = run::unix_ns(timeline, first);
            let past = look.at_ns.is_some() && last < newest;
            model.measure(timeline, (from, last), past);
            model.observe(timeline, look, (first, from, last));
            if past {
                model.metrics.retain(|row| run::unix_ns(timeline, last).is_none_or(|at| row.time_ns <= at));
            }
        }
        model
    }

    /// The newest known value of a column of metrics.csv.
    pub fn newest<T>(&self, column: impl Fn(&MetricsRow) -> Option<T>) -> Option<T> {
        self.metrics.iter().rev().find_map(column)
    }

    /// The stages: the numbers of `dflash report` over the same window.
    fn measure(&mut self, timeline: &Timeline, (from, last): (i64, i64), past: bool) {
        let to_ns = past.then(|| last.saturating_add(1));
        let window = Window { from_ns: Some(from), to_ns, ..Window::default() };
        let stages = stage_table(timeline, &window);
        self.throughput = Throughput::of(&stages);
        self.verdict = dflash_reports::verdict::verdict(&stages).to_string();
        let mut tables = stages.lanes;
        for (id, lane) in (0..).map(LaneId).zip(&timeline.lanes) {
            let is_its =
                |table: &LaneTable| (&table.lane, &table.device, table.rank) == (&lane.name, &lane.device, lane.rank);
            let table = tables.iter().position(is_its).map(|index| tables.remove(index));
            let bins = Bins::new(from, last);
            self.lanes.push(Lane {
                name: lane.name.clone(),
                device: lane.device.clone(),
                rank: lane.rank,
                curves: curves(timeline, id, bins),
                total_curve: total_curve(timeline, id, bins),
                inside: inside(timeline, id, last).filter(|_| !past),
                table,
            });
        }
    }

    /// What the counters, the marks and the records themselves say.
    fn observe(&mut self, timeline: &Timeline, look: &Look, (first, from, last): (i64, i64, i64)) {
        let bins = Bins::new(from, last);
        let histories = Histories::of(timeline, bins, (from, last));
        let window = Window { from_ns: Some(from), to_ns: Some(last.saturating_add(1)), ..Window::default() };
        self.queues = queues::queues(timeline, &dflash_reports::queues::queues(timeline, &window), &histories);
        self.gpus = gpu::gpus(timeline, &histories, bins, last);
        self.threads = thread::threads(timeline, &histories, &self.lanes);
        self.process = Process::of(timeline, &histories);
        self.events = event::events(timeline, (first, last));
        if let Some(zoom) = look.zoom {
            self.gantt = Gantt::of(timeline, zoom, (first, last));
        }
    }
}

/// First and last moment of anything that was recorded.
#[must_use]
pub fn extent(timeline: &Timeline) -> Option<(i64, i64)> {
    // Samples are sorted, and tell that a process lives whose lanes are stuck.
    let samples = timeline.samples.first().zip(timeline.samples.last()).map(|(a, b)| (a.time_ns, b.time_ns));
    match (timeline.extent(), samples) {
        (Some((first, last)), Some((begin, end))) => Some((first.min(begin), last.max(end))),
        (spans, samples) => spans.or(samples),
    }
}

fn inside(timeline: &Timeline, lane: LaneId, last: i64) -> Option<(String, Duration)> {
    let open = timeline.open.iter().filter(|span| span.lane == lane).max_by_key(|span| span.begin_ns)?;
    let since = u64::try_from(last.saturating_sub(open.begin_ns)).unwrap_or(0);
    Some((timeline.name(open.name).to_owned(), Duration::from_nanos(since)))
}
