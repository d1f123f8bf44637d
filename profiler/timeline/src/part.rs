//! Decoding many blocks side by side: each thread fills a part of the timeline.

use std::sync::{Arc, OnceLock};
use std::thread;

use crate::clock::{Drift, Followed};
use crate::decode::{Records, States, decode};
use crate::dictionary::Ids;
use crate::record::{Anchor, DeviceAnchor, Flow, Iteration, LaterTime, Mark, Sample, Span, StackSample};
use crate::visit::{Account, Visit};

/// Bytes below which a further thread costs more than it brings.
const WORTH_A_THREAD: usize = 128 << 10;

/// Threads that run at once, asked for once: the answer takes reading files.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// One block to decode.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// Its place among what was found.
    pub place: usize,
    pub ids: Arc<Ids>,
    pub records: Records<'a>,
    /// What is added to its times beyond the header's shift.
    pub drift: Option<Arc<Drift>>,
    /// Leave out what lies outside of these times.
    pub cut: Option<Window>,
}

/// First and last time that are asked for, monotonic nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Window {
    /// Whether something of a stretch lies in the window.
    pub(crate) fn meets(&self, begin_ns: i64, duration_ns: u64) -> bool {
        begin_ns <= self.to_ns && begin_ns.saturating_add_unsigned(duration_ns) >= self.from_ns
    }
}

/// The records of some blocks that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// By lane.
    pub spans: Vec<Vec<Span>>,
    pub iterations: Vec<Iteration>,
    pub samples: Vec<Sample>,
    pub flows: Vec<Flow>,
    pub marks: Vec<Mark>,
    pub stacks: Vec<StackSample>,
    pub anchors: Vec<Anchor>,
    pub device_anchors: Vec<DeviceAnchor>,
    pub later: Vec<LaterTime>,
    /// What blocks say of the whole stream, with the blocks' places.
    pub accounts: Vec<(usize, Account)>,
    /// Places of blocks that could not be decoded; nothing of them is in the part.
    pub bad: Vec<usize>,
    place: usize,
    cut: Option<Window>,
}

/// Decodes blocks on as many threads as are worth it. The parts are in the order of the tasks.
pub(crate) fn decode_all(tasks: &[Task<'_>], lanes: usize) -> Vec<Part> {
    let bytes: usize = tasks.iter().map(|task| task.records.length()).sum();
    let threads = cores().min(bytes / WORTH_A_THREAD).max(1);
    let share = tasks.len().div_ceil(threads).max(1);
    if threads == 1 {
        return vec![Part::of(tasks, lanes)];
    }
    thread::scope(|scope| {
        let handles: Vec<_> =
            tasks.chunks(share).map(|tasks| (tasks, scope.spawn(move || Part::of(tasks, lanes)))).collect();
        // A thread that ended badly, which decoding gives no cause for: its blocks are decoded here.
        handles.into_iter().map(|(tasks, handle)| handle.join().unwrap_or_else(|_| Part::of(tasks, lanes))).collect()
    })
}

/// Decodes a block; `None` if it cannot be.
pub(crate) fn decode_task<V: Visit>(task: &Task<'_>, states: &mut States, visit: &mut V) -> Option<()> {
    match task.drift.as_deref() {
        None => decode(task.records, &task.ids, states, visit),
        Some(drift) => decode(task.records, &task.ids, states, &mut Followed { drift, visit }),
    }
}

impl Part {
    fn of(tasks: &[Task<'_>], lanes: usize) -> Self {
        let mut part = Self { spans: vec![Vec::new(); lanes], ..Self::default() };
        let (mut states, mut before) = (States::default(), Lengths::default());
        for task in tasks {
            part.decode(task, &mut states, &mut before);
        }
        part
    }

    fn decode(&mut self, task: &Task<'_>, states: &mut States, before: &mut Lengths) {
        (self.place, self.cut) = (task.place, task.cut);
        before.note(self);
        if decode_task(task, states, self).is_none() {
            before.restore(self);
            self.bad.push(task.place);
        }
    }

    #[inline]
    fn wanted(&self, begin_ns: i64, duration_ns: u64) -> bool {
        self.cut.is_none_or(|window| window.meets(begin_ns, duration_ns))
    }
}

impl Visit for Part {
    #[inline]
    fn span(&mut self, span: Span) {
        if self.wanted(span.begin_ns, span.duration_ns)
            && let Some(lane) = self.spans.get_mut(span.lane.0 as usize)
        {
            lane.push(span);
        }
    }

    fn iteration(&mut self, iteration: Iteration) {
        if self.wanted(iteration.begin_ns, iteration.duration_ns) {
            self.iterations.push(iteration);
        }
    }

    #[inline]
    fn sample(&mut self, sample: Sample) {
        if self.wanted(sample.time_ns, 0) {
            self.samples.push(sample);
        }
    }

    fn flow(&mut self, flow: Flow) {
        if self.wanted(flow.time_ns, 0) {
            self.flows.push(flow);
        }
    }

    fn mark(&mut self, mark: Mark) {
        if self.wanted(mark.time_ns, 0) {
            self.marks.push(mark);
        }
    }

    fn stack(&mut self, stack: StackSample) {
        if self.wanted(stack.time_ns, 0) {
            self.stacks.push(stack);
        }
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.anchors.push(anchor);
    }

    fn device_anchor(&mut self, anchor: DeviceAnchor) {
        self.device_anchors.push(anchor);
    }

    fn later(&mut self, time: LaterTime) {
        self.later.push(time);
    }

    fn account(&mut self, account: Account) {
        self.accounts.push((self.place, account));
    }
}

/// How much a part held before a block, to take back what a bad one left.
#[derive(Debug, Default)]
struct Lengths {
    spans: Vec<usize>,
    rest: [usize; 9],
}

impl Lengths {
    fn note(&mut self, part: &Part) {
        self.spans.clear();
        self.spans.extend(part.spans.iter().map(Vec::len));
        self.rest = [
            part.iterations.len(),
            part.samples.len(),
            part.flows.len(),
            part.marks.len(),
            part.stacks.len(),
            part.anchors.len(),
            part.device_anchors.len(),
            part.accounts.len(),
            part.later.len(),
        ];
    }

    #[cold]
    fn restore(&self, part: &mut Part) {
        part.spans.iter_mut().zip(&self.spans).for_each(|(spans, length)| spans.truncate(*length));
        let [iterations, samples, flows, marks, stacks, anchors, device_anchors, accounts, later] = self.rest;
        part.iterations.truncate(iterations);
        part.samples.truncate(samples);
        part.flows.truncate(flows);
        part.marks.truncate(marks);
        part.stacks.truncate(stacks);
        part.anchors.truncate(anchors);
        part.device_anchors.truncate(device_anchors);
        part.accounts.truncate(accounts);
        part.later.truncate(later);
    }
}
