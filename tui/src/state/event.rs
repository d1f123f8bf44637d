//! What happened: marks of the timeline, and iterations that were not ordinary.

use std::time::Duration;

use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, Severity};

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Look at this.
    Warning,
    /// A checkpoint.
    Checkpoint,
    /// An evaluation.
    Evaluation,
    /// The instrumentation was changed.
    Level,
    /// A note.
    Mark,
    /// A line that the program wrote while its own view had the terminal.
    Log,
}

impl EventKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Checkpoint => "checkpoint",
            Self::Evaluation => "evaluation",
            Self::Level => "level",
            Self::Mark => "mark",
            Self::Log => "log",
        }
    }

    /// By what the text of a mark says.
    fn of_mark(severity: Severity, text: &str) -> Self {
        let begins = |word: &str| text.starts_with(word);
        match severity {
            Severity::Warning => Self::Warning,
            Severity::Info if begins("level") || begins("CPU sampling") || begins("kernel") => Self::Level,
            Severity::Info if begins("checkpoint") => Self::Checkpoint,
            Severity::Info => Self::Mark,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Since the first record.
    pub after: Duration,
    /// What it is about.
    pub kind: EventKind,
    /// What.
    pub text: String,
}

/// All events up to `last_ns`, newest first.
pub fn events(timeline: &Timeline, (first_ns, last_ns): (i64, i64)) -> Vec<Event> {
    let after = |time_ns: i64| Duration::from_nanos(u64::try_from(time_ns.saturating_sub(first_ns)).unwrap_or(0));
    let marks = timeline.marks.iter().map(|mark| {
        let kind = EventKind::of_mark(mark.severity, &mark.text);
        (mark.time_ns, Event { after: after(mark.time_ns), kind, text: mark.text.clone() })
    });
    let passes = timeline.iterations.iter().filter_map(|pass| {
        let kind = match pass.kind {
            Kind::Checkpoint => EventKind::Checkpoint,
            Kind::Eval => EventKind::Evaluation,
            _ => return None,
        };
        let lane = timeline.lane(pass.lane).map_or("?", |lane| lane.name.as_str());
        let seconds = pass.duration_ns as f64 / 1e9;
        let text = format!("{lane}: iteration {} took {seconds:.2} s", pass.number);
        Some((pass.begin_ns, Event { after: after(pass.begin_ns), kind, text }))
    });
    let mut all: Vec<(i64, Event)> = marks.chain(passes).filter(|(time_ns, _)| *time_ns <= last_ns).collect();
    all.sort_by_key(|(time_ns, _)| std::cmp::Reverse(*time_ns));
    all.into_iter().map(|(_, event)| event).collect()
}
