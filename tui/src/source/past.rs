//! What lies before the part of a recording that is kept in memory: it is read when it is looked at, and forgotten when
//! it no longer is.

use dflash_reports::timeline::{ReadOptions, RunDir, Timeline, read_with};

use crate::Result;
use crate::state::{Look, extent};

/// More than this is not read at once, nanoseconds: the numbers of a longer window are those of its end.
const LONGEST: i64 = 600 * 1_000_000_000;

/// A part of a recording.
#[derive(Debug)]
pub struct Past {
    from_ns: i64,
    to_ns: i64,
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
        self.from_ns
    }

    /// The part that `look` asks for; `None` if `newest` holds it. It is read when `before` does not hold it either, and
    /// then as much beside it that playing on does not read at every step. `most_ns` fit into memory.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(
        before: Option<Self>,
        run: &RunDir,
        look: &Look,
        newest: &Timeline,
        most_ns: i64,
    ) -> Result<Option<Self>> {
        let (Some(at), Some((first, last))) = (look.at_ns, extent(newest)) else { return Ok(None) };
        let most_ns = most_ns.min(LONGEST);
        let from = at.saturating_sub(look.window.nanoseconds().unwrap_or(LONGEST).min(most_ns / 2));
        if from >= first || at >= last {
            return Ok(None);
        }
        if let Some(before) = before
            && before.from_ns <= from
            && before.to_ns >= at
        {
            return Ok(Some(before));
        }
        let spare = most_ns.saturating_sub(at.saturating_sub(from)).max(0);
        let (from_ns, to_ns) = (from.saturating_sub(spare / 4), at.saturating_add(spare / 4 * 3));
        let mut timeline = read_with(run, &ReadOptions { from_ns: Some(from_ns), to_ns: Some(to_ns) })?;
        // What is said of the recording as a whole, its newest part says.
        timeline.health = newest.health.clone();
        (timeline.totals, timeline.expired) = (newest.totals, newest.expired);
        timeline.detail_from_ns = newest.detail_from_ns;
        timeline.open.clear();
        if timeline.anchors.is_empty() {
            timeline.anchors.clone_from(&newest.anchors);
        }
        Ok(Some(Self { from_ns, to_ns, timeline }))
    }
}
