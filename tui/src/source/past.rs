//! What lies before the part of a recording that is kept in memory: it is read when it is looked at, and forgotten when
//! it no longer is. A thread of its own reads it: to find it in a long recording takes as long as many frames.

use std::thread::{self, JoinHandle};

use dflash_reports::timeline::{self, ReadOptions, RunDir, Timeline, read_with};

use crate::state::{Look, extent};

/// More than this is not read at once, nanoseconds: the numbers of a longer window are those of its end.
const LONGEST: i64 = 600 * 1_000_000_000;

/// A stretch of time that somebody looks at, monotonic nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    from_ns: i64,
    to_ns: i64,
}

impl Stretch {
    /// The part that `look` asks for; `None` if `newest` holds it. `most_ns` fit into memory.
    #[must_use]
    pub fn beyond(newest: &Timeline, look: &Look, most_ns: i64) -> Option<Self> {
        let (at, (first, last)) = look.at_ns.zip(extent(newest))?;
        let from = at.saturating_sub(look.window.nanoseconds().unwrap_or(LONGEST).min(most_ns.min(LONGEST) / 2));
        (from < first && at < last).then_some(Self { from_ns: from, to_ns: at })
    }

    /// As much beside it that playing on does not read at every step.
    fn with_spare(self, most_ns: i64) -> Self {
        let spare = most_ns.min(LONGEST).saturating_sub(self.to_ns.saturating_sub(self.from_ns)).max(0);
        Self { from_ns: self.from_ns.saturating_sub(spare / 4), to_ns: self.to_ns.saturating_add(spare / 4 * 3) }
    }
}

/// A part of a recording.
#[derive(Debug)]
pub struct Past {
    stretch: Stretch,
    timeline: Timeline,
}

impl Past {
    /// What was recorded then.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// From when on it holds what was recorded, monotonic nanoseconds.
    #[must_use]
    #[cfg(test)]
    pub fn begin_ns(&self) -> i64 {
        self.stretch.from_ns
    }

    /// Whether all of this is in it.
    #[must_use]
    pub fn holds(&self, stretch: Stretch) -> bool {
        self.stretch.from_ns <= stretch.from_ns && self.stretch.to_ns >= stretch.to_ns
    }
}

/// A part that is being read.
pub struct Reading {
    asked: Stretch,
    stretch: Stretch,
    thread: JoinHandle<timeline::Result<Timeline>>,
}

impl Reading {
    /// Begins to read a stretch and as much beside it as fits into `most_ns`; says why if it cannot.
    pub fn begin(run: &RunDir, asked: Stretch, most_ns: i64) -> Result<Self, String> {
        let (run, stretch) = (run.clone(), asked.with_spare(most_ns));
        let options = ReadOptions { from_ns: Some(stretch.from_ns), to_ns: Some(stretch.to_ns) };
        let thread = thread::Builder::new().name("past".to_owned()).spawn(move || read_with(&run, &options));
        let thread = thread.map_err(|error| format!("what was recorded then cannot be read: {error}"))?;
        Ok(Self { asked, stretch, thread })
    }

    /// What was asked for.
    #[must_use]
    pub fn asked(&self) -> Stretch {
        self.asked
    }

    /// Whether [`end`](Self::end) would not wait.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// What was read, or why it could not be. What is said of the recording as a whole, its newest part says.
    pub fn end(self, newest: &Timeline) -> Result<Past, String> {
        let read = self.thread.join().map_err(|_| "what was recorded then could not be read".to_owned())?;
        let mut timeline = read.map_err(|error| error.to_string())?;
        timeline.health = newest.health.clone();
        (timeline.totals, timeline.expired) = (newest.totals, newest.expired);
        timeline.detail_from_ns = newest.detail_from_ns;
        timeline.open.clear();
        if timeline.anchors.is_empty() {
            timeline.anchors.clone_from(&newest.anchors);
        }
        Ok(Past { stretch: self.stretch, timeline })
    }
}
