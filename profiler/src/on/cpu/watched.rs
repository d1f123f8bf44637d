//! The threads that are sampled: found by looking at /proc, each with its timer and its CPU time.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use dflash_sys::cpu_ns_of_thread;
use dflash_sys::sampling::{Sampling, ThreadTimer};

use super::helpers::Hint;
use super::tasks;

/// Looks after which a thread's name is read again, and after which one that could not be sampled is tried again; new
/// threads at the next two. A thread that begins or ends blocks all signals for a moment.
const AGAIN_AFTER: u32 = 10;

/// All threads of the process.
#[derive(Debug)]
pub(crate) struct Watched {
    hz: u32,
    own_too: bool,
    program: String,
    threads: HashMap<u32, Watch>,
    /// Names of those that ended since the last look but one: their last samples may be on their way.
    gone: HashMap<u32, Arc<str>>,
    ended: Counts,
}

/// How many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub sampled: u64,
    pub own: u64,
    /// Seen more than once, and never sampled.
    pub unwatched: u64,
    /// CPU time of those that were sampled, nanoseconds.
    pub cpu_ns: u64,
}

#[derive(Debug)]
struct Watch {
    name: Arc<str>,
    /// The profiler's own, which is not sampled.
    own: bool,
    timer: Option<ThreadTimer>,
    first_ns: u64,
    last_ns: u64,
    looks: u32,
}

impl Watched {
    pub(crate) fn new(hz: u32, own_too: bool) -> Self {
        let (threads, gone) = (HashMap::new(), HashMap::new());
        Self { hz, own_too, program: tasks::program(), threads, gone, ended: Counts::default() }
    }

    /// Finds new threads, renamed ones, and those that ended.
    pub(crate) fn look(&mut self, sampling: &Sampling) {
        let tids: HashSet<u32> = tasks::tids().into_iter().collect();
        let mut threads = mem::take(&mut self.threads);
        self.gone.clear();
        for (tid, watch) in threads.extract_if(|tid, watch| !tids.contains(tid) || !watch.update(*tid)) {
            self.ended.add(&watch);
            self.gone.insert(tid, watch.name);
        }
        for tid in tids {
            if threads.get(&tid).is_none_or(|watch| watch.is_due() && watch.has_changed(tid)) {
                let before = threads.remove(&tid);
                threads.extend(self.watch(tid, before, sampling).map(|watch| (tid, watch)));
            }
        }
        self.threads = threads;
    }

    /// Gives a thread its timer: a new thread, or one that has another name now, or had no timer.
    fn watch(&self, tid: u32, before: Option<Watch>, sampling: &Sampling) -> Option<Watch> {
        let name: Arc<str> = tasks::name(tid)?.into();
        let now_ns = cpu_ns_of_thread(tid)?;
        let (first_ns, looks) = match &before {
            Some(before) if before.timer.is_some() => (before.first_ns, before.looks),
            Some(before) => (now_ns, before.looks),
            None => (now_ns, 0),
        };
        // Before the new one begins.
        drop(before);
        let own = name.starts_with("dflash-") && !self.own_too;
        let hint = Hint::of(&name, &self.program).pack();
        let reachable = !own && !tasks::blocks(tid, sampling.signal());
        let timer = reachable.then(|| sampling.watch(tid, self.hz, hint).ok()).flatten();
        Some(Watch { name, own, timer, first_ns, last_ns: now_ns, looks })
    }

    /// A sample says how much CPU time its thread had used.
    pub(crate) fn used(&mut self, tid: u32, cpu_ns: u64) {
        if let Some(watch) = self.threads.get_mut(&tid) {
            watch.last_ns = watch.last_ns.max(cpu_ns);
        }
    }

    /// A thread's name.
    pub(crate) fn name(&self, tid: u32) -> Arc<str> {
        let known = self.threads.get(&tid).map(|watch| &watch.name).or_else(|| self.gone.get(&tid));
        known.cloned().unwrap_or_else(|| tasks::name(tid).unwrap_or_else(|| "?".to_owned()).into())
    }

    /// Ends all timers. Names stay.
    pub(crate) fn stop(&mut self) {
        for (tid, watch) in self.threads.drain() {
            self.ended.add(&watch);
            self.gone.insert(tid, watch.name);
        }
    }

    /// How many there were.
    pub(crate) fn counts(&self) -> Counts {
        self.threads.values().fold(self.ended, |mut counts, watch| {
            counts.add(watch);
            counts
        })
    }
}

impl Counts {
    fn add(&mut self, watch: &Watch) {
        match watch.timer {
            Some(_) => {
                self.sampled += 1;
                self.cpu_ns += watch.last_ns.saturating_sub(watch.first_ns);
            }
            None if watch.own => self.own += 1,
            None => self.unwatched += u64::from(watch.looks > 1),
        }
    }
}

impl Watch {
    /// Reads its CPU time; `false`: it ended, and another thread may have its number.
    fn update(&mut self, tid: u32) -> bool {
        self.looks += 1;
        let Some(now_ns) = cpu_ns_of_thread(tid).filter(|now| *now >= self.last_ns) else { return false };
        self.last_ns = now_ns;
        true
    }

    fn is_due(&self) -> bool {
        self.looks <= 2 || self.looks.is_multiple_of(AGAIN_AFTER)
    }

    fn has_changed(&self, tid: u32) -> bool {
        (self.timer.is_none() && !self.own) || tasks::name(tid).is_some_and(|name| *name != *self.name)
    }
}
