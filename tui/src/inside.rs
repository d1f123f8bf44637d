//! A program that shows its own run while it goes on: what it and the view tell each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::state::{Event, EventKind, Model};

/// Lines that are kept at most: a training says something now and then, for days.
const MOST: usize = 400;

/// Shared by a program and the view of its own run, which has a thread of its own. What the program writes to stderr
/// meanwhile is kept, and shown among the events.
#[derive(Clone, Debug, Default)]
pub struct Inside(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// When it was read, nanoseconds since 1970, and what it says.
    newest: VecDeque<(i64, String)>,
    left_out: u64,
}

/// What was written to stderr while the view had the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The newest lines, oldest first.
    pub lines: Vec<String>,
    /// How many lines before them were not kept.
    pub left_out: u64,
}

impl Inside {
    /// Says that the run is over: the view gives the terminal back within a moment.
    pub fn finish(&self) {
        self.0.over.store(true, Ordering::Relaxed);
    }

    /// Takes the lines that were kept; to be shown once the view has ended.
    #[must_use]
    pub fn take_lines(&self) -> Kept {
        let Lines { newest, left_out } = std::mem::take(&mut *self.lines());
        Kept { lines: newest.into_iter().map(|(_, line)| line).collect(), left_out }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }

    /// Keeps lines that were read just now.
    pub(crate) fn keep(&self, lines: Vec<String>, now_unix_ns: i64) {
        let mut kept = self.lines();
        kept.newest.extend(lines.into_iter().map(|line| (now_unix_ns, line)));
        let surplus = kept.newest.len().saturating_sub(MOST);
        kept.newest.drain(..surplus);
        kept.left_out += surplus as u64;
    }

    /// Puts the lines among the events, newest first.
    pub(crate) fn tell(&self, model: &mut Model) {
        let begin = model.begin_unix_ns.unwrap_or(i64::MAX);
        let events = self
            .lines()
            .newest
            .iter()
            .rev()
            .map(|(at, line)| {
                let after = u64::try_from(at.saturating_sub(begin)).unwrap_or(0);
                Event { after: std::time::Duration::from_nanos(after), kind: EventKind::Log, text: line.clone() }
            })
            .collect::<Vec<_>>();
        model.events.extend(events);
        model.events.sort_by_key(|event| std::cmp::Reverse(event.after));
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_stand_among_the_events() {
        let inside = Inside::default();
        inside.keep((0..MOST + 3).map(|number| format!("line {number}")).collect(), 5_000_000_000);
        let mut model = Model { begin_unix_ns: Some(2_000_000_000), ..Model::default() };
        inside.tell(&mut model);
        assert_eq!(model.events.len(), MOST);
        assert_eq!((model.events[0].text.as_str(), model.events[0].after.as_secs()), ("line 402", 3));
        let kept = inside.take_lines();
        assert_eq!((kept.left_out, kept.lines.first().map(String::as_str)), (3, Some("line 3")));
        assert_eq!(inside.take_lines(), Kept::default());
    }
}
