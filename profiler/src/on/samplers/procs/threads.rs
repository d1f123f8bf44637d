//! CPU time by thread, under names that tell threads apart.
//!
//! A thread is called what `top -H` calls it (the kernel cuts names at 15 bytes), and as long as it is in a lane, by the
//! lane's whole name. Of living threads with the same name the first one seen keeps it, the others are `name#2`,
//! `name#3`, …, each the lowest number that is free; a number is used again when its thread has ended, so that a process
//! that makes threads without end has only as many counters as it ever had threads at once.
//!
//! A thread that rests is recorded as 0 once and then not again before it works; so is one that has ended. What a thread
//! did between the last turn and its end is in `process.cpu` alone.

use std::collections::{BTreeMap, HashSet};

use super::lanes::lane_of;
use super::source::Source;
use crate::on::samplers::sink::Sink;

/// Turns after which a thread's name is looked at again. New ones are looked at twice at once: many threads get their
/// name just after they begin.
const RENAME_EVERY: u64 = 16;

/// The threads that lived at the last turn.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: BTreeMap<u32, Known>,
    /// What living threads are called.
    used: HashSet<String>,
    turn: u64,
}

#[derive(Debug)]
struct Known {
    name: Name,
    /// The name, told apart from others.
    label: String,
    counter: String,
    cpu_ns: u64,
    turns: u64,
    /// What was recorded last.
    recorded: Option<State>,
    seen: u64,
}

/// What a thread is called, and by whom.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Own(String),
    Lane(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Works,
    Rests,
}

impl Threads {
    /// Reads all threads; percentages from the second turn on.
    pub(super) fn sample(&mut self, source: &impl Source, elapsed_ns: Option<i64>, sink: &mut dyn Sink) {
        self.turn += 1;
        let mut ids = source.threads();
        ids.sort_unstable();
        let readings: Vec<_> = ids.into_iter().filter_map(|id| Some((id, source.cpu_ns(id)?))).collect();
        for (id, cpu_ns) in &readings {
            self.forget_reused(*id, *cpu_ns);
            if let Some(known) = self.known.get_mut(id) {
                known.seen = self.turn;
            }
        }
        self.forget_ended(sink);
        for (id, cpu_ns) in readings {
            self.name(id, source, sink);
            self.record(id, cpu_ns, elapsed_ns, sink);
        }
    }

    /// CPU time does not go back: another thread has this id now.
    fn forget_reused(&mut self, id: u32, cpu_ns: u64) {
        if self.known.get(&id).is_some_and(|known| cpu_ns < known.cpu_ns)
            && let Some(known) = self.known.remove(&id)
        {
            self.used.remove(&known.label);
        }
    }

    fn forget_ended(&mut self, sink: &mut dyn Sink) {
        let (used, turn) = (&mut self.used, self.turn);
        self.known.retain(|_, known| {
            let lives = known.seen == turn;
            if !lives {
                used.remove(&known.label);
                known.retire(sink);
            }
            lives
        });
    }

    /// Gives a new thread its label, and another one to a thread that is called differently now.
    fn name(&mut self, id: u32, source: &impl Source, sink: &mut dyn Sink) {
        let name = match (lane_of(id), self.known.get(&id)) {
            (Some(lane), _) => Name::Lane(lane),
            (None, Some(known)) if !known.look_again() => return,
            (None, _) => {
                let name = source.name(id).filter(|name| !name.is_empty());
                Name::Own(name.unwrap_or_else(|| "unnamed".to_owned()))
            }
        };
        if self.known.get(&id).is_some_and(|known| known.name == name) {
            return;
        }
        let mut before = self.known.remove(&id);
        if let Some(before) = &mut before {
            self.used.remove(&before.label);
            before.retire(sink);
        }
        let label = self.free(name.as_str());
        self.used.insert(label.clone());
        let (cpu_ns, turns) = before.map_or((0, 0), |before| (before.cpu_ns, before.turns));
        let counter = format!("thread.{label}.cpu");
        self.known.insert(id, Known { name, label, counter, cpu_ns, turns, recorded: None, seen: self.turn });
    }

    /// The name, or the name with the lowest free number.
    fn free(&self, name: &str) -> String {
        if !self.used.contains(name) {
            return name.to_owned();
        }
        (2_u64..).map(|number| format!("{name}#{number}")).find(|label| !self.used.contains(label)).unwrap_or_default()
    }

    fn record(&mut self, id: u32, cpu_ns: u64, elapsed_ns: Option<i64>, sink: &mut dyn Sink) {
        let Some(known) = self.known.get_mut(&id) else { return };
        // A thread that is new since the last turn has done all its work since then.
        let used_ns = cpu_ns.saturating_sub(known.cpu_ns);
        known.cpu_ns = cpu_ns;
        known.turns += 1;
        match elapsed_ns {
            Some(_) if used_ns == 0 => known.rest(sink),
            Some(elapsed_ns) => {
                known.recorded = Some(State::Works);
                sink.sample(&known.counter, "%", used_ns as f64 * 100.0 / elapsed_ns as f64);
            }
            None => {}
        }
    }
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(name) | Self::Lane(name) => name,
        }
    }
}

impl Known {
    /// Whether the system may call it differently by now; one that was in a lane has left it.
    fn look_again(&self) -> bool {
        self.turns < 2 || self.turns.is_multiple_of(RENAME_EVERY) || matches!(self.name, Name::Lane(_))
    }

    fn rest(&mut self, sink: &mut dyn Sink) {
        if self.recorded.replace(State::Rests) != Some(State::Rests) {
            sink.sample(&self.counter, "%", 0.0);
        }
    }

    /// Nothing comes after the last reading of this counter: it must not stay at work for ever.
    fn retire(&mut self, sink: &mut dyn Sink) {
        if self.recorded == Some(State::Works) {
            self.rest(sink);
        }
    }
}
