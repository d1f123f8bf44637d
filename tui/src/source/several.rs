//! Several runs at once, on one clock: the ranks of a training that spans machines, or runs side by side.

use dflash_reports::sources::{Place, joined};
use dflash_reports::timeline::{Manifest, RunDir, State as RunState, Timeline};

use super::{RunSource, now_unix_ns};
use crate::Result;
use crate::state::{Input, Look, Model};

/// Runs that are looked at as one.
pub struct SeveralSource {
    runs: Vec<RunSource>,
    name: String,
    timeline: Timeline,
    places: Vec<Place>,
    problems: Vec<String>,
}

impl SeveralSource {
    /// Opens the runs and takes the first look.
    ///
    /// # Errors
    /// As [`RunSource::open`], for any of them.
    pub fn open(runs: Vec<RunDir>) -> Result<Self> {
        let count = runs.len();
        // What one run may take in memory, all of them may: and once more for what is made of them.
        let runs = runs.into_iter().map(|run| RunSource::open_as_one_of(run, 2 * count)).collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = runs.iter().map(|run| run.run().name()).collect();
        let name = match names.as_slice() {
            [one, other] => format!("{one} + {other}"),
            [first, rest @ ..] => format!("{first} + {} more", rest.len()),
            [] => String::new(),
        };
        let mut source = Self { runs, name, timeline: Timeline::default(), places: Vec::new(), problems: Vec::new() };
        source.merge();
        Ok(source)
    }

    /// What was read, as one.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Whether more may come of one of them.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.runs.iter().any(RunSource::is_live)
    }

    /// Looks again at each; whether the numbers may have changed.
    pub fn poll(&mut self) -> bool {
        // Each of them, also behind one that has changed.
        let changed = self.runs.iter_mut().filter_map(|run| run.poll().then_some(())).count() > 0;
        if changed {
            self.merge();
        }
        changed
    }

    /// Waits for what silent runs say of themselves.
    pub fn settle(&mut self) {
        self.runs.iter_mut().for_each(RunSource::hear);
        self.merge();
    }

    /// Whom to ask: the directory of a run that goes on and the process's rank in it, with the rank that it has here.
    #[must_use]
    pub fn processes(&self) -> Vec<(RunDir, u32)> {
        let live = self.runs.iter().zip(&self.places).filter(|(run, _)| run.is_live());
        live.flat_map(|(run, place)| {
            let own = place.ranks.iter().filter_map(|rank| rank.checked_sub(place.first_rank));
            own.map(|rank| (run.run().clone(), rank))
        })
        .collect()
    }

    fn merge(&mut self) {
        let parts = self.runs.iter().map(|run| (run.run(), run.timeline()));
        (self.timeline, self.places) = joined(parts);
        self.problems = self.runs.iter().flat_map(|run| run.problems().iter().cloned()).collect();
        // That of the run that speaks for all is said as one run's is.
        let head = self.head().map(RunSource::run);
        let others = self.runs.iter().filter(|run| Some(run.run()) != head);
        let stopped: Vec<String> = others
            .filter_map(|run| {
                let (name, trouble) = (run.run().name(), run.manifest().trouble.as_ref()?);
                Some(format!("{name}: the recording is incomplete: {trouble}"))
            })
            .collect();
        self.problems.extend(stopped);
        let apart = self.places.iter().filter(|place| !place.aligned);
        self.problems.extend(apart.map(|place| {
            format!("{}: its clock cannot be compared to the first run's, so its times mean nothing here", place.run)
        }));
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        let nothing = Manifest::default();
        let metrics = self.runs.iter().map(RunSource::metrics).find(|metrics| !metrics.rows().is_empty());
        let input = Input {
            name: &self.name,
            manifest: self.head().map_or(&nothing, RunSource::manifest),
            state: self.head().map_or(RunState::Finished, RunSource::state),
            here: self.runs.iter().filter(|run| run.is_live()).all(RunSource::is_here),
            timeline: &self.timeline,
            extent_ns: None,
            metrics: metrics.map_or(&[], |metrics| metrics.rows()),
            logged: metrics.and_then(super::metrics::Metrics::logged),
            problems: &self.problems,
            now_unix_ns: now_unix_ns(),
        };
        Model::new(&input, look)
    }

    /// The run that speaks for all: one that goes on, else one that ended badly, else the first.
    fn head(&self) -> Option<&RunSource> {
        let ended_badly = |run: &&RunSource| run.state() != RunState::Finished;
        let live = self.runs.iter().find(|run| run.is_live());
        live.or_else(|| self.runs.iter().find(ended_badly)).or_else(|| self.runs.first())
    }
}
