//! A run's directory, looked at again and again.

use std::path::Path;
use std::{fs, io};

use dflash_reports::timeline::{self, Manifest, RunDir, State as RunState, Tail, Timeline};

use super::keep::Keep;
use super::metrics::Metrics;
use super::past::{Past, Reading, Stretch};
use super::{hostname, now_unix_ns};
use crate::Result;
use crate::state::{Input, Look, Model, extent};

/// A finished run with more bytes of timeline than this is not read whole: its last part is, and others when they are
/// looked at.
const WHOLE: u64 = 64 << 20;

/// A run that is being looked at.
pub struct RunSource {
    run: RunDir,
    name: String,
    recording: Recording,
    manifest: Manifest,
    state: RunState,
    metrics: Metrics,
    problems: Vec<String>,
    host: String,
    count: usize,
    past: Option<Past>,
    reading: Option<Reading>,
    /// What could not be read is not tried again while it is looked at.
    failed: Option<Stretch>,
}

/// A finished run is read once and whole; a running one, and one that is too long, is followed.
enum Recording {
    Whole(Box<Timeline>),
    /// `None` only while it is being replaced.
    Followed(Option<Box<Tail>>, Keep),
}

impl Recording {
    fn open(run: &RunDir, state: RunState, count: usize) -> Result<Self> {
        if state != RunState::Running && bytes(&run.timeline_dir()) <= WHOLE / count as u64 {
            return Ok(Self::Whole(Box::new(timeline::read(run)?)));
        }
        let keep = Keep::one_of(count);
        Ok(Self::Followed(Some(Box::new(Tail::open(run)?.with_window(keep.nanoseconds()))), keep))
    }

    fn timeline(&self) -> Option<&Timeline> {
        match self {
            Self::Whole(timeline) => Some(timeline),
            Self::Followed(tail, _) => tail.as_deref().map(Tail::timeline),
        }
    }

    /// Takes what has come, and forgets what is too much.
    fn poll(&mut self) -> Result<()> {
        let Self::Followed(place, keep) = self else { return Ok(()) };
        let Some(tail) = place else { return Ok(()) };
        tail.poll()?;
        if keep.shorten(tail.timeline()) {
            *place = place.take().map(|tail| Box::new(tail.with_window(keep.nanoseconds())));
        }
        Ok(())
    }
}

/// Bytes of a timeline's segments.
fn bytes(directory: &Path) -> u64 {
    let length =
        |entry: io::Result<fs::DirEntry>| entry.and_then(|entry| entry.metadata()).map_or(0, |data| data.len());
    fs::read_dir(directory).map_or(0, |entries| entries.map(length).sum())
}

impl RunSource {
    /// Opens a run and takes the first look.
    ///
    /// # Errors
    /// When run.json or the timeline's directory cannot be read.
    pub fn open(run: RunDir) -> Result<Self> {
        Self::open_as_one_of(run, 1)
    }

    /// Opens a run that is one of so many: what one of them may keep in memory is the less.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_as_one_of(run: RunDir, count: usize) -> Result<Self> {
        let (manifest, state) = (run.manifest()?, run.state()?);
        let recording = Recording::open(&run, state, count)?;
        let (name, host) = (run.name(), hostname());
        let (metrics, problems) = (Metrics::of(run.metrics_csv()), Vec::new());
        let (past, reading, failed) = (None, None, None);
        let mut source =
            Self { run, name, recording, manifest, state, metrics, problems, host, count, past, reading, failed };
        source.poll();
        Ok(source)
    }

    /// Whether the run may still write.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state == RunState::Running
    }

    /// Where it lies.
    #[must_use]
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Looks again. What cannot be read keeps its last value and becomes a line of the screen: a run that is moved or
    /// removed while it is watched must not end the view. Says whether the numbers may have changed: of a run that goes on
    /// its age does, of one that is over nothing.
    pub fn poll(&mut self) -> bool {
        let before = (self.manifest.clone(), self.state, self.metrics.logged(), std::mem::take(&mut self.problems));
        let looked = self.look();
        self.note(looked);
        let read = self.metrics.poll();
        self.note(read);
        let (manifest, state, logged, problems) = before;
        let same = (&manifest, state, logged) == (&self.manifest, self.state, self.metrics.logged());
        self.is_live() || !same || problems != self.problems
    }

    fn note(&mut self, looked: Result<()>) {
        if let Err(error) = looked {
            self.problems.push(error.to_string());
        }
    }

    fn look(&mut self) -> Result<()> {
        self.recording.poll()?;
        let before = self.state;
        (self.manifest, self.state) = (self.run.manifest()?, self.run.state()?);
        // A finished run that is resumed goes on in the same directory.
        if self.state == RunState::Running && before != RunState::Running {
            self.recording = Recording::open(&self.run, self.state, self.count)?;
            return self.look();
        }
        Ok(())
    }

    /// Begins to read what `look` asks for and is not in memory; whether all of it is there.
    pub fn prepare(&mut self, look: &Look) -> bool {
        let Recording::Followed(Some(tail), keep) = &self.recording else { return true };
        let most_ns = keep.fitting(tail.timeline());
        let Some(stretch) = Stretch::beyond(tail.timeline(), look, most_ns) else {
            self.past = None;
            return true;
        };
        if self.failed == Some(stretch) || self.past.as_ref().is_some_and(|past| past.holds(stretch)) {
            return true;
        }
        // One after the other: who runs through a recording asks for many.
        if self.reading.is_none() {
            match Reading::begin(&self.run, stretch, most_ns) {
                Ok(reading) => self.reading = Some(reading),
                Err(problem) => {
                    self.problems.push(problem);
                    return true;
                }
            }
        }
        false
    }

    /// Takes what was read meanwhile; whether there is something new to show. Where reading failed, what is in memory is
    /// shown, and why.
    pub fn arrive(&mut self) -> bool {
        let Some(reading) = self.reading.take_if(|reading| reading.is_done()) else { return false };
        self.take(reading);
        true
    }

    /// Reads what `look` asks for, and waits for it.
    pub fn settle(&mut self, look: &Look) {
        if !self.prepare(look)
            && let Some(reading) = self.reading.take()
        {
            self.take(reading);
        }
    }

    fn take(&mut self, reading: Reading) {
        let Some(newest) = self.timeline() else { return };
        let asked = reading.asked();
        match reading.end(newest) {
            Ok(past) => (self.past, self.failed) = (Some(past), None),
            Err(problem) => {
                (self.past, self.failed) = (None, Some(asked));
                self.problems.push(problem);
            }
        }
    }

    /// First and last moment that can be looked at: what is not in memory can be read.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        let timeline = self.timeline()?;
        let (first, last) = extent(timeline)?;
        let begin = match &self.recording {
            // The first block of the attempt dates it, and is always read.
            Recording::Followed(..) => timeline.anchors.first().map_or(first, |anchor| anchor.monotonic_ns),
            Recording::Whole(_) => first,
        };
        Some((begin.max(timeline.detail_from_ns.unwrap_or(i64::MIN)).min(first), last))
    }

    /// What was read of its timeline.
    #[must_use]
    pub fn timeline(&self) -> Option<&Timeline> {
        self.recording.timeline()
    }

    /// Its run.json.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.state
    }

    /// Whether it runs on this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.manifest.host == self.host
    }

    /// Its metrics.csv.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What could not be read at the last look.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Its processes.
    #[must_use]
    pub fn processes(&self) -> Vec<(RunDir, u32)> {
        let lanes = self.timeline().map_or(&[][..], |timeline| &timeline.lanes);
        let mut ranks: Vec<u32> = lanes.iter().map(|lane| lane.rank).chain([0]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.into_iter().map(|rank| (self.run.clone(), rank)).collect()
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        let nothing = Timeline::default();
        let input = Input {
            name: &self.name,
            manifest: &self.manifest,
            state: self.state,
            here: self.is_here(),
            timeline: self.past.as_ref().map(Past::timeline).or(self.timeline()).unwrap_or(&nothing),
            extent_ns: self.extent(),
            metrics: self.metrics.rows(),
            logged: self.metrics.logged(),
            problems: &self.problems,
            now_unix_ns: now_unix_ns(),
        };
        Model::new(&input, look)
    }
}

#[cfg(test)]
mod tests {
    use dflash_reports::stages::{Window, stage_table};
    use dflash_reports::timeline::SegmentWriter;
    use dflash_reports::timeline::record::{Anchor, Iteration, Kind, Lane, Span, Totals};

    use super::*;
    use crate::state::WindowLength;

    const SECOND: i64 = 1_000_000_000;
    /// So many runs share the room that this one does not fit into its part.
    const RUNS: usize = 100;

    /// A finished run of 6000 s, ten iterations a second.
    fn long_run(parent: &Path) -> timeline::Result<RunDir> {
        let mut manifest = Manifest::default();
        manifest.started_unix_ns = SECOND;
        let run = RunDir::create(parent, "long", manifest)?;
        let mut writer = SegmentWriter::create(&run, 0, 1 << 20)?;
        writer.anchor(&Anchor { monotonic_ns: 0, realtime_ns: SECOND });
        let lane = writer.lane(&Lane { name: "drafter:0".to_owned(), device: "cpu".to_owned(), rank: 0 });
        let names =
            ["drafter.wait", "drafter.forward", "drafter.loss", "drafter.backward"].map(|name| writer.name(name));
        for number in 0..60_000 {
            let begin_ns = number as i64 * SECOND / 10;
            for (at, name) in (0..).zip(names) {
                let (iteration, index, device) = (Some(number), None, None);
                let begin_ns = begin_ns + at * 20_000_000;
                let duration_ns = 20_000_000 + number * 7919 % 1_000_003 - 1_000_003;
                writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns, device })?;
            }
            let (kind, duration_ns, cpu_ns, tokens) = (Kind::Train, 90_000_000, None, Some(512));
            writer.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens })?;
            if number % 200 == 0 {
                writer.flush(&[], Totals::default())?;
            }
        }
        writer.end(&[], Totals::default())?;
        let mut manifest = run.manifest()?;
        manifest.state = RunState::Finished;
        run.write_manifest(&manifest)?;
        Ok(run)
    }

    #[test]
    fn what_is_not_in_memory_is_read_when_it_is_looked_at() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let run = long_run(parent.path()).expect("a run can be written");
        let mut source = RunSource::open_as_one_of(run.clone(), RUNS).expect("it can be opened");
        let look = Look { window: WindowLength::Seconds10, ..Look::default() };
        let newest = source.model(&look);
        assert_eq!(newest.extent_ns, Some((0, 5_999_990_000_000)), "all of it can be looked at");
        assert!(newest.held_ns > Some(4000 * SECOND), "only a part is in memory: {:?}", newest.held_ns);
        let whole = timeline::read(&run).expect("it can be read");
        for (second, read) in [(300, true), (301, false), (40, true), (5, true), (5990, false)] {
            let at = second * SECOND;
            let look = Look { at_ns: Some(at), ..look };
            let before = source.past.as_ref().map(Past::begin_ns);
            assert_eq!(source.prepare(&look), !read, "{second} s");
            source.settle(&look);
            assert!(source.prepare(&look), "{second} s");
            assert_eq!(source.past.as_ref().map(Past::begin_ns) != before && source.past.is_some(), read, "{second} s");
            let model = source.model(&look);
            let window = Window { from_ns: Some((at - 10 * SECOND).max(0)), to_ns: Some(at + 1), ..Window::default() };
            let table = stage_table(&whole, &window).lanes.remove(0);
            assert_eq!(model.lanes[0].table.as_ref(), Some(&table), "{second} s");
            assert!(!model.losses.torn && model.losses.problems.is_empty(), "{:?}", model.losses);
        }
        source.prepare(&look);
        assert!(source.past.is_none(), "it is forgotten when the newest part is looked at");
    }
    #[test]
    fn what_cannot_be_read_is_said_once_and_not_tried_again() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let run = long_run(parent.path()).expect("a run can be written");
        let mut source = RunSource::open_as_one_of(run.clone(), RUNS).expect("it can be opened");
        let (segment, aside) = (run.timeline_dir().join("rank0-000001.dft"), parent.path().join("aside"));
        fs::rename(&segment, &aside).expect("it can be moved away");
        fs::create_dir(&segment).expect("something else can stand there");
        let look = Look { window: WindowLength::Seconds10, at_ns: Some(300 * SECOND), ..Look::default() };
        source.settle(&look);
        assert_eq!(source.problems().len(), 1, "{:?}", source.problems());
        assert!(source.prepare(&look) && !source.arrive(), "the same moment is not asked for again");
        fs::remove_dir(&segment).and_then(|()| fs::rename(&aside, &segment)).expect("it can be moved back");
        let look = Look { at_ns: Some(301 * SECOND), ..look };
        source.settle(&look);
        assert!(source.past.is_some(), "another moment is");
    }
}
