//! A run in a temporary directory, and its recording as text.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};

use dflash_profiler::timeline::record::{LaneId, Span};
use dflash_profiler::timeline::{Manifest, RunDir, Timeline, read};
use dflash_profiler::{Level, Options, Profiler, Totals};

/// The level is the process's, so one test records at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Recording {
    pub profiler: Profiler,
    pub run: RunDir,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Recording {
    pub fn start(level: Level) -> Self {
        Self::with(|options| options.level = level)
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let directory = tempfile::tempdir().unwrap();
        let run = RunDir::create(directory.path(), "test", Manifest::default()).unwrap();
        let mut options = Options::new(run.clone());
        (options.sample_every, options.nvml.every) = (None, None);
        // Whoever counts spans wants them of every iteration.
        options.bare.pairs = 0;
        change(&mut options);
        let profiler = Profiler::start(options).unwrap();
        Self { profiler, run, _directory: directory, _alone: alone }
    }

    /// Ends the recording and reads it. Every recording must keep its accounts.
    pub fn finish(&self) -> (Timeline, Totals) {
        let totals = self.profiler.finish();
        let timeline = read(&self.run).unwrap();
        assert_eq!(totals.emitted, totals.written + totals.dropped, "{totals:?}");
        let lanes = self.profiler.lanes();
        for lane in &lanes {
            assert_eq!(lane.emitted, lane.written + lane.dropped, "{lane:?}");
            assert_eq!(lane.late, 0, "{lane:?}");
            let read = of_lane(&timeline, &lane.lane, &lane.device);
            assert!(self.profiler.trouble().is_some() || read <= lane.written, "{read} of {lane:?}");
        }
        assert!(lanes.iter().map(|lane| lane.written).sum::<u64>() <= totals.written);
        // Written by the stream since it has a record for it.
        for said in &timeline.lane_totals {
            assert_eq!(said.emitted, said.written + said.dropped, "{said:?}");
        }
        if self.profiler.trouble().is_none() {
            assert_eq!(timeline.totals, totals);
            assert_eq!(records(&timeline), totals.written, "{totals:?}");
            assert!(timeline.health.ended);
            assert_eq!(timeline.health.problems, Vec::<String>::new());
        }
        (timeline, totals)
    }
}

/// Spans, iterations and hand-offs of a lane; samples of its allocator are its own as well, but do not say so.
fn of_lane(timeline: &Timeline, name: &str, device: &str) -> u64 {
    let Some(id) = timeline.lanes.iter().position(|lane| lane.name == name && lane.device == device) else { return 0 };
    let id = LaneId(id as u32);
    let spans = timeline.spans.iter().filter(|span| span.lane == id).count();
    let iterations = timeline.iterations.iter().filter(|iteration| iteration.lane == id).count();
    let flows = timeline.flows.iter().filter(|flow| flow.lane == id).count();
    (spans + iterations + flows) as u64
}

pub fn records(timeline: &Timeline) -> u64 {
    let Timeline { spans, iterations, samples, flows, marks, .. } = timeline;
    (spans.len() + iterations.len() + samples.len() + flows.len() + marks.len()) as u64
}

/// Every lane as an indented tree: iterations, their spans, and what lies outside of them.
pub fn tree(timeline: &Timeline) -> String {
    let mut text = String::new();
    for (id, lane) in timeline.lanes.iter().enumerate() {
        let id = LaneId(id as u32);
        writeln!(text, "{} on {}", lane.name, lane.device).unwrap();
        let spans = |iteration| timeline.spans.iter().filter(move |s| s.lane == id && s.iteration == iteration);
        for iteration in timeline.iterations.iter().filter(|i| i.lane == id) {
            let tokens = iteration.tokens.map(|n| format!(", {n} tokens")).unwrap_or_default();
            writeln!(text, "  {} ({}{tokens})", iteration.number, iteration.kind.as_str()).unwrap();
            spans(Some(iteration.number)).for_each(|span| line(timeline, span, &mut text));
        }
        spans(None).for_each(|span| line(timeline, span, &mut text));
    }
    text
}

fn line(timeline: &Timeline, span: &Span, text: &mut String) {
    let indent = 2 * usize::from(span.depth) + if span.iteration.is_some() { 4 } else { 2 };
    let index = span.index.map(|i| format!(" [{i}]")).unwrap_or_default();
    writeln!(text, "{:indent$}{}{index}", "", timeline.name(span.name)).unwrap();
}
