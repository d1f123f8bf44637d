//! The run itself: alive or not, since when, and what was lost of its record.

use std::time::Duration;

use dflash_reports::timeline::{Manifest, State as RunState, Timeline};

/// Nothing new for so long, and a run on another host counts as silent.
const SILENT: Duration = Duration::from_secs(30);

/// Whether the trainer lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// Its process is there.
    Alive,
    /// It runs on another host, and wrote within the last half minute.
    Remote,
    /// It runs on another host and has not written for half a minute or more.
    Silent,
    /// It ended as its manifest says.
    #[default]
    Ended,
    /// Its manifest says that it runs, but its process is gone.
    Died,
    /// There is no run: only this machine's GPUs are looked at.
    NoRun,
}

/// The run's head data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The directory's name.
    pub name: String,
    /// Which start it is, from 1.
    pub attempt: u32,
    /// Where it runs.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// Whether it lives.
    pub liveness: Liveness,
    /// `running`, `finished`, ….
    pub state: &'static str,
    /// How it ended, in the run's own words.
    pub outcome: Option<String>,
    /// Why its recording stopped before the run did; `None`: it did not, as far as is known.
    pub trouble: Option<String>,
    /// From its start to its end, or until now; `None` if the manifest does not tell.
    pub elapsed: Option<Duration>,
    /// Since the newest record; `None` if there is none or no clock anchor.
    pub age: Option<Duration>,
    /// Acceptance length at the run's end, where it was measured.
    pub tau: Option<f64>,
}

impl Run {
    /// Puts together what the manifest, the process table and the newest record say.
    pub fn new(
        name: &str,
        manifest: &Manifest,
        (state, here): (RunState, bool),
        age: Option<Duration>,
        now: i64,
    ) -> Self {
        let liveness = match state {
            _ if manifest.pid == 0 && manifest.started_unix_ns == 0 && name.is_empty() => Liveness::NoRun,
            RunState::Running if here => Liveness::Alive,
            RunState::Running if age.is_none_or(|age| age < SILENT) => Liveness::Remote,
            RunState::Running => Liveness::Silent,
            RunState::Died => Liveness::Died,
            _ => Liveness::Ended,
        };
        Self {
            name: name.to_owned(),
            attempt: manifest.attempt,
            host: manifest.host.clone(),
            pid: manifest.pid,
            liveness,
            state: state.as_str(),
            outcome: manifest.outcome.clone(),
            trouble: manifest.trouble.clone(),
            elapsed: elapsed(manifest, liveness, age, now),
            age,
            tau: manifest.results.get("tau").and_then(|tau| tau.as_f64()),
        }
    }

    /// Whether more may come.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.liveness, Liveness::Alive | Liveness::Remote | Liveness::Silent | Liveness::NoRun)
    }
}

/// A run that died did not say when: it lasted until its newest record.
fn elapsed(manifest: &Manifest, liveness: Liveness, age: Option<Duration>, now: i64) -> Option<Duration> {
    if manifest.started_unix_ns <= 0 {
        return None;
    }
    let age_ns = || i64::try_from(age?.as_nanos()).ok();
    let end = match (manifest.ended_unix_ns, liveness) {
        (Some(ended), _) => ended,
        (None, Liveness::Died) => now.saturating_sub(age_ns()?),
        (None, _) => now,
    };
    u64::try_from(end.saturating_sub(manifest.started_unix_ns)).ok().map(Duration::from_nanos)
}

/// A moment of the recording as nanoseconds since 1970, by the anchor nearest before it.
pub fn unix_ns(timeline: &Timeline, time_ns: i64) -> Option<i64> {
    let anchor =
        timeline.anchors.iter().rev().find(|anchor| anchor.monotonic_ns <= time_ns).or(timeline.anchors.first())?;
    Some(anchor.realtime_ns.saturating_add(time_ns.saturating_sub(anchor.monotonic_ns)))
}

/// Since the newest record.
pub fn age(timeline: &Timeline, last_ns: i64, now_unix_ns: i64) -> Option<Duration> {
    let last_unix_ns = unix_ns(timeline, last_ns)?;
    // A clock that was set back makes an age negative; it is then as good as new.
    Some(Duration::from_nanos(u64::try_from(now_unix_ns.saturating_sub(last_unix_ns)).unwrap_or(0)))
}

/// What is missing from the record, so that nobody trusts the numbers more than they deserve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records that the run dropped because a ring was full or the disk failed.
    pub dropped: u64,
    /// Damaged blocks that were skipped.
    pub bad_blocks: u64,
    /// The stream of a run that has ended lacks its end.
    pub torn: bool,
    /// Spans without a place: clocks ran backwards, ended out of order, or lost their iteration.
    pub misplaced: u64,
    /// Bytes that were deleted on purpose (`[profile] keep`).
    pub expired: u64,
    /// From when on there is detail, since the run's start, if older detail was deleted.
    pub detail_from: Option<Duration>,
    /// One line per damage.
    pub problems: Vec<String>,
}

impl Losses {
    /// Reads them off a timeline.
    pub fn new(timeline: &Timeline, live: bool, started_unix_ns: i64) -> Self {
        let (totals, health) = (&timeline.totals, &timeline.health);
        let recorded = !timeline.lanes.is_empty();
        let detail_from = timeline.detail_from_ns.and_then(|from| unix_ns(timeline, from));
        let since_start = |at: i64| u64::try_from(at.saturating_sub(started_unix_ns)).ok().map(Duration::from_nanos);
        Self {
            dropped: totals.dropped,
            bad_blocks: health.bad_blocks,
            torn: recorded && !live && !health.ended,
            misplaced: totals.misplaced + totals.negative,
            expired: timeline.expired.bytes,
            detail_from: detail_from.filter(|_| started_unix_ns > 0).and_then(since_start),
            problems: health.problems.clone(),
        }
    }

    /// Whether the record is whole.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.dropped == 0 && self.bad_blocks == 0 && self.misplaced == 0 && !self.torn
    }

    /// The losses in words, e.g. `lost 12 records, 1 bad block, torn`.
    #[must_use]
    pub fn words(&self) -> String {
        let count = |number: u64, what: &str| (number > 0).then(|| format!("{number} {what}{}", plural(number)));
        let mut words: Vec<String> = [
            count(self.dropped, "record").map(|records| format!("lost {records}")),
            count(self.bad_blocks, "bad block"),
            count(self.misplaced, "misplaced span"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.torn {
            words.push("torn".to_owned());
        }
        if words.is_empty() { "lost 0".to_owned() } else { words.join(", ") }
    }
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}
