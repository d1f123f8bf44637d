//! One timeline out of the blocks of all ranks and segments.

use std::collections::BTreeMap;
use std::path::Path;

use crate::by_lane;
use crate::decode::{PADDING, States};
use crate::dictionary::Known;
use crate::format::{HEADER, Header};
use crate::hold::Held;
use crate::later::join;
use crate::order;
use crate::part::{Part, Task, Window, decode_all, decode_task};
use crate::rank::{Rank, add_lanes};
use crate::record::{Expired, LaterTime, Span, Totals};
use crate::scan::{Batch, Found};
use crate::tee::Tee;
use crate::timeline::Timeline;
use crate::visit::{Account, Visit};

/// Spans that may wait to be put in order: 3 MB.
const MUCH: usize = 1 << 15;

/// Grows a timeline batch by batch.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pub timeline: Timeline,
    known: Known,
    ranks: BTreeMap<u32, Rank>,
    /// Last time of any block.
    pub newest_ns: Option<i64>,
    /// Spans that came since the timeline was sorted: of each batch, by lane.
    new_spans: Vec<Vec<Vec<Span>>>,
    /// Device times of spans that came without.
    later: Vec<LaterTime>,
    /// What a visitor gets once its device times are known.
    held: Held,
}

impl Assembler {
    /// Where a rank's stream stands.
    pub(crate) fn rank(&mut self, rank: u32) -> &mut Rank {
        self.ranks.entry(rank).or_default()
    }

    /// Takes what a segment of `rank` held; `path` is for what is said about damage. Records outside of `window` are left
    /// out.
    pub(crate) fn add(&mut self, path: &Path, rank: u32, batch: &Batch<'_>, window: Option<Window>) {
        let (tasks, mut bad) = self.tasks(batch, window);
        let mut parts = decode_all(&tasks, self.timeline.lanes.len());
        let mut accounts = Vec::new();
        for part in &mut parts {
            bad.append(&mut part.bad);
            accounts.append(&mut part.accounts);
        }
        bad.sort_unstable();
        self.keep_books(path, rank, batch, &bad, accounts);
        parts.into_iter().for_each(|part| self.take(part));
    }

    /// The same, but the records go to `visit` one by one.
    pub(crate) fn show(
        &mut self,
        path: &Path,
        rank: u32,
        batch: &Batch<'_>,
        window: Option<Window>,
        visit: &mut impl Visit,
    ) {
        let count = |t: &Timeline| t.names.len() + t.lanes.len() + t.counters.len() + t.streams.len();
        let before = count(&self.timeline);
        let (tasks, mut bad) = self.tasks(batch, window);
        if count(&self.timeline) > before {
            visit.texts(&self.timeline);
        }
        let (mut states, mut accounts) = (States::default(), Vec::new());
        for task in &tasks {
            if let Some(Found::Block { header, .. }) = batch.found.get(task.place) {
                self.held.begin(header, visit);
            }
            let before = accounts.len();
            let hold = self.held.before(visit);
            let mut tee = Tee { visit: hold, place: task.place, cut: task.cut, accounts: &mut accounts };
            if decode_task(task, &mut states, &mut tee).is_none() {
                accounts.truncate(before);
                bad.push(task.place);
            }
        }
        bad.sort_unstable();
        self.keep_books(path, rank, batch, &bad, accounts);
    }

    /// Hands over what is held back: no more comes.
    pub(crate) fn shown(&mut self, visit: &mut impl Visit) {
        self.held.release_all(visit);
    }

    /// Says that a rank's file ends in the middle of a block.
    pub(crate) fn torn(&mut self, path: &Path, at: u64, bytes: u64) {
        self.timeline.health.skipped_bytes += bytes;
        let place = path.display();
        self.problem(format!("{place}: torn: the last {bytes} bytes, from {at} on, are no whole block"));
    }

    /// Adds a line to what is wrong with the stream.
    pub(crate) fn problem(&mut self, text: String) {
        self.timeline.health.problems.push(text);
    }

    /// Whether so many spans came since the last [`settle`](Self::settle) that the next one is worth what it costs: it goes
    /// through all that is held, and a run of many ranks comes in many small pieces.
    pub(crate) fn has_much_new(&self) -> bool {
        let new: usize = self.new_spans.iter().flatten().map(Vec::len).sum();
        new > MUCH.max(self.timeline.spans.len() / 4)
    }

    /// Sorts what was added, and sums the ranks up.
    pub(crate) fn settle(&mut self) {
        self.settle_spans();
        let timeline = &mut self.timeline;
        order::sort(&mut timeline.iterations, |i| (i.lane, i.begin_ns));
        order::sort(&mut timeline.samples, |s| s.time_ns);
        order::sort(&mut timeline.flows, |f| f.time_ns);
        order::sort(&mut timeline.marks, |m| m.time_ns);
        order::sort(&mut timeline.stacks, |s| s.time_ns);
        order::sort(&mut timeline.anchors, |a| (a.monotonic_ns, a.realtime_ns));
        timeline.anchors.dedup();
        order::sort(&mut timeline.device_anchors, |a| a.host_ns);
        self.ranks.values_mut().for_each(|rank| rank.say_gaps(&mut timeline.health));
        let ranks = self.ranks.values();
        timeline.open = ranks.clone().flat_map(|rank| rank.open().iter().copied()).collect();
        timeline.totals = ranks.clone().fold(Totals::default(), |sum, rank| sum.plus(&rank.totals()));
        timeline.expired = ranks.clone().fold(Expired::default(), |sum, rank| sum.plus(&rank.expired()));
        timeline.detail_from_ns = ranks.clone().filter_map(Rank::detail_from_ns).max();
        let mut lanes = BTreeMap::new();
        ranks.clone().for_each(|rank| add_lanes(&mut lanes, rank.lanes().copied()));
        timeline.lane_totals = lanes.into_values().collect();
        timeline.health.ended = !self.ranks.is_empty() && self.ranks.values().all(Rank::ended);
    }

    /// Forgets what ended before `from_ns`.
    pub(crate) fn forget_before(&mut self, from_ns: i64) {
        let timeline = &mut self.timeline;
        let end = |begin_ns: i64, duration_ns: u64| begin_ns.saturating_add_unsigned(duration_ns);
        timeline.spans.retain(|s| end(s.begin_ns, s.duration_ns) >= from_ns);
        timeline.iterations.retain(|i| end(i.begin_ns, i.duration_ns) >= from_ns);
        timeline.samples.retain(|s| s.time_ns >= from_ns);
        timeline.flows.retain(|f| f.time_ns >= from_ns);
        timeline.marks.retain(|m| m.time_ns >= from_ns);
        timeline.device_anchors.retain(|a| a.host_ns >= from_ns);
        timeline.stacks.retain(|s| s.time_ns >= from_ns);
        // The first anchor dates the run, however old it is.
        let first = timeline.anchors.first().copied();
        timeline.anchors.retain(|a| a.monotonic_ns >= from_ns || Some(*a) == first);
    }

    /// What is to be decoded, and the places of blocks whose texts make no sense.
    fn tasks<'a>(&mut self, batch: &Batch<'a>, window: Option<Window>) -> (Vec<Task<'a>>, Vec<usize>) {
        let (mut tasks, mut bad) = (Vec::new(), Vec::new());
        for (place, found) in batch.found.iter().enumerate() {
            let Found::Block { header, at } = found else { continue };
            let begin = at + HEADER;
            let padded = batch.bytes.get(begin..begin + header.length as usize + PADDING).unwrap_or_default();
            let plain = header.codec == 0 && header.raw_length == header.length;
            let ids = self.known.ids(header, padded, &mut self.timeline);
            match ids.filter(|_| plain) {
                Some((ids, records)) => {
                    let inside = |w: &Window| header.first_ns >= w.from_ns && header.last_ns <= w.to_ns;
                    let cut = window.filter(|window| !inside(window));
                    tasks.push(Task { place, ids, records, cut, drift: batch.drift.clone() });
                }
                None => bad.push(place),
            }
        }
        (tasks, bad)
    }

    /// Notes which blocks came, what was skipped, and what the blocks say of the whole.
    fn keep_books(
        &mut self,
        path: &Path,
        rank: u32,
        batch: &Batch<'_>,
        bad: &[usize],
        accounts: Vec<(usize, Account)>,
    ) {
        let mut accounts = accounts.into_iter().peekable();
        for (place, found) in batch.found.iter().enumerate() {
            match found {
                Found::Block { header, .. } if bad.binary_search(&place).is_ok() => {
                    let (version, bytes) = (header.version, HEADER as u64 + u64::from(header.length));
                    let what = format!(
                        "a sound block of {bytes} bytes (format version {version}) holds what this dflash does not know \
                         and was skipped; if a newer one wrote it, update dflash"
                    );
                    self.skipped(path, rank, bytes, what);
                }
                Found::Block { header, .. } | Found::Passed(header) => {
                    self.block(path, rank, header);
                    while let Some((_, account)) = accounts.next_if(|(of, _)| *of == place) {
                        self.rank(rank).account(account);
                    }
                }
                Found::Skipped { at, bytes } => {
                    self.skipped(path, rank, *bytes, format!("{bytes} bytes at {at} are damaged and were skipped"));
                }
                Found::Shrunk { from, to } => {
                    let text = format!("{}: was cut from {from} to {to} bytes while it was read", path.display());
                    self.problem(text);
                }
            }
        }
    }

    fn block(&mut self, path: &Path, rank: u32, header: &Header) {
        if header.last_ns != 0 {
            self.newest_ns = Some(self.newest_ns.map_or(header.last_ns, |ns| ns.max(header.last_ns)));
        }
        self.rank(rank).block(path, header);
    }

    fn skipped(&mut self, path: &Path, rank: u32, bytes: u64, what: String) {
        self.rank(rank).damaged();
        self.timeline.health.bad_blocks += 1;
        self.timeline.health.skipped_bytes += bytes;
        self.problem(format!("{}: {what}", path.display()));
    }

    fn take(&mut self, mut part: Part) {
        let timeline = &mut self.timeline;
        timeline.iterations.append(&mut part.iterations);
        timeline.samples.append(&mut part.samples);
        timeline.flows.append(&mut part.flows);
        timeline.marks.append(&mut part.marks);
        timeline.stacks.append(&mut part.stacks);
        timeline.anchors.append(&mut part.anchors);
        timeline.device_anchors.append(&mut part.device_anchors);
        self.later.append(&mut part.later);
        self.new_spans.push(part.spans);
    }

    /// Puts the spans that came to those that were there, and the device times that came into their spans.
    fn settle_spans(&mut self) {
        let timeline = &mut self.timeline;
        by_lane::put(&mut timeline.spans, std::mem::take(&mut self.new_spans), timeline.lanes.len());
        join(&mut timeline.spans, &std::mem::take(&mut self.later));
    }
}
