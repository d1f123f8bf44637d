//! Collects the durations of every stage of every iteration, and summarises them at the end.

use super::hint::{Evidence, is_sync};
use super::node::Node;
use super::{LaneTable, RESIDUE, ROLES, SetApart, StageRow, StageTable};
use crate::forest::{Forest, Place};
use crate::stats::{Stats, add, share, sum};
use crate::values::Values;
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use std::collections::BTreeMap;

/// The last bit stands for every node from 63 on.
fn bit(node: usize) -> u64 {
    1 << node.min(63)
}

/// What is known of one lane so far.
#[derive(Default)]
struct Lane {
    forest: Forest<Node>,
    /// Nodes that the iteration at hand has touched.
    touched: Vec<usize>,
    totals: Values,
    /// Device time of iterations, by the stages that ran without one: a bit each.
    device_totals: BTreeMap<u64, Values>,
    residues: Values,
    overfull: u64,
    cpu_ns: u64,
    wall_with_cpu_ns: u64,
    tokens: Option<u64>,
    extent_ns: Option<(i64, i64)>,
    /// Time of evaluations: between training iterations, and since the last one.
    evaluating_ns: (u64, u64),
    set_apart: BTreeMap<Kind, Values>,
}

/// The durations of all lanes, iteration by iteration.
#[derive(Default)]
pub(crate) struct Gathered {
    lanes: BTreeMap<LaneId, Lane>,
    places: Vec<usize>,
}

impl Gathered {
    /// Takes an iteration of the window.
    pub(crate) fn add(&mut self, iteration: &Iteration, spans: &[Placed<'_>]) {
        let lane = self.lanes.entry(iteration.lane).or_default();
        if iteration.kind == Kind::Train {
            lane.add_spans(spans, &mut self.places);
            lane.add_iteration(iteration);
        } else {
            if iteration.kind == Kind::Bare {
                lane.add_progress(iteration);
            }
            if iteration.kind == Kind::Eval && lane.extent_ns.is_some() {
                add(&mut lane.evaluating_ns.1, iteration.duration_ns);
            }
            lane.set_apart.entry(iteration.kind).or_default().push(iteration.duration_ns);
        }
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        self.lanes.extend(other.lanes);
    }

    pub(crate) fn finish(self, timeline: &Timeline, strays: u64) -> StageTable {
        let lanes = self.lanes.into_iter().filter_map(|(id, lane)| {
            let who = timeline.lane(id)?;
            let (name, device, rank) = (who.name.clone(), who.device.clone(), who.rank);
            Some(LaneTable { lane: name, device, rank, ..lane.table(timeline) })
        });
        let mut lanes: Vec<LaneTable> = lanes.collect();
        lanes.sort_by_cached_key(pipeline_order);
        StageTable { lanes, strays }
    }
}

pub(super) fn gather(timeline: &Timeline, window: &Window) -> StageTable {
    let mut gathered = Gathered::default();
    let strays = walk::for_each_pass(timeline, window, |iteration, spans| gathered.add(iteration, spans));
    gathered.finish(timeline, strays)
}

/// Lanes are recorded in the order in which they were first written, which differs from run to run.
fn pipeline_order(lane: &LaneTable) -> (u32, usize, String, Option<u64>, String) {
    let place = ROLES.iter().position(|role| *role == lane.role()).unwrap_or(ROLES.len());
    let number = lane.lane.split(':').nth(1).and_then(|number| number.parse().ok());
    (lane.rank, place, lane.role().to_owned(), number, lane.lane.clone())
}

impl Lane {
    fn add_spans(&mut self, spans: &[Placed<'_>], places: &mut Vec<usize>) {
        places.clear();
        for Placed { span, parent } in spans {
            let place = Place { parent: parent.map(|p| places[p]), name: span.name, index: None };
            let at = self.forest.at(place);
            places.push(at);
            let (_, node) = &mut self.forest.nodes[at];
            (node.depth, node.spans) = (span.depth, node.spans + 1);
            if node.now.is_none() {
                self.touched.push(at);
            }
            let first = node.now.is_none();
            node.now.get_or_insert_default().take(span, first);
        }
    }

    fn add_iteration(&mut self, iteration: &Iteration) {
        let mut stages = 0;
        let (mut device_ns, mut untimed) = (0, 0);
        for at in self.touched.drain(..) {
            let (_, node) = &mut self.forest.nodes[at];
            let sums = node.now.take().unwrap_or_default();
            node.host.push(sums.host_ns);
            if !sums.untimed {
                node.device.get_or_insert_default().add(&sums);
            }
            if node.depth == 0 {
                add(&mut stages, sums.host_ns);
                match sums.untimed {
                    true => untimed |= bit(at),
                    false => add(&mut device_ns, sums.device_ns),
                }
            }
        }
        self.totals.push(iteration.duration_ns);
        self.device_totals.entry(untimed).or_default().push(device_ns);
        self.residues.push(iteration.duration_ns.saturating_sub(stages));
        self.overfull += u64::from(stages > iteration.duration_ns);
        if let Some(cpu_ns) = iteration.cpu_ns {
            add(&mut self.cpu_ns, cpu_ns);
            add(&mut self.wall_with_cpu_ns, iteration.duration_ns);
        }
        self.add_progress(iteration);
    }

    /// What an iteration adds to the run, with spans or without.
    fn add_progress(&mut self, iteration: &Iteration) {
        if let Some(tokens) = iteration.tokens {
            self.tokens = Some(self.tokens.unwrap_or(0).saturating_add(tokens));
        }
        let since = std::mem::take(&mut self.evaluating_ns.1);
        add(&mut self.evaluating_ns.0, since);
        let (begin, end) = (iteration.begin_ns, walk::end_ns(iteration));
        self.extent_ns = Some(self.extent_ns.map_or((begin, end), |(first, last)| (first.min(begin), last.max(end))));
    }

    /// Device times of the iterations in which no stage lacks one that has one elsewhere.
    fn total_device(&mut self) -> Option<Stats> {
        let stages = self.forest.nodes.iter().enumerate();
        let timed = stages.filter(|(_, (_, node))| node.depth == 0 && node.device.is_some());
        let timed = timed.fold(0, |bits, (at, _)| bits | bit(at));
        let mut whole = Values::default();
        let all = std::mem::take(&mut self.device_totals).into_iter();
        all.filter(|(untimed, _)| timed != 0 && untimed & timed == 0).for_each(|(_, values)| whole.merge(values));
        whole.stats().known()
    }

    fn table(mut self, timeline: &Timeline) -> LaneTable {
        let total = self.totals.stats();
        let mut below = vec![Vec::new(); self.forest.nodes.len() + 1];
        for (at, (place, _)) in self.forest.nodes.iter().enumerate() {
            below[place.parent.map_or(0, |p| p + 1)].push(at);
        }
        let mut rows = Vec::with_capacity(below.len());
        self.push_rows(timeline, &below, None, total.total_ns, &mut rows);
        if total.count > 0 {
            let host = self.residues.stats();
            let share = share(host.total_ns, total.total_ns);
            let stage = RESIDUE.into();
            rows.push(StageRow { stage, depth: 0, parent: None, spans: 0, host, device: None, share, hint: None });
        }
        let total_device = self.total_device();
        LaneTable {
            iterations: total.count,
            set_apart: self.set_apart.iter_mut().map(|(&kind, durations)| set_apart(kind, durations)).collect(),
            total,
            total_device,
            rows,
            cpu_share: (self.wall_with_cpu_ns > 0).then(|| share(self.cpu_ns, self.wall_with_cpu_ns)),
            tokens: self.tokens,
            extent_ns: self.extent_ns,
            evaluating_ns: self.evaluating_ns.0,
            overfull: self.overfull,
            ..LaneTable::default()
        }
    }

    /// Appends the nodes below `parent`, each followed by its own.
    fn push_rows(
        &mut self,
        timeline: &Timeline,
        below: &[Vec<usize>],
        parent: Option<usize>,
        whole: u64,
        rows: &mut Vec<StageRow>,
    ) {
        for &at in &below[parent.map_or(0, |p| p + 1)] {
            let sync_ns = self.sync_below(timeline, below, at);
            let (place, node) = &mut self.forest.nodes[at];
            let host = node.host.stats();
            let stage = timeline.name(place.name);
            let (host_ns, on_device) = (host.total_ns, node.device.as_mut());
            let mut evidence = Evidence { stage, host_ns, sync_ns, ..Evidence::default() };
            if let Some(found) = &on_device {
                (evidence.ratio, evidence.lag, evidence.left) =
                    (found.ratios.median(), found.lags.median(), found.left.median());
                (evidence.pairs, evidence.longest_ns) = (found.ratios.len(), found.longest_ns);
            }
            let row = StageRow {
                hint: evidence.hint(),
                stage: stage.to_owned(),
                depth: node.depth,
                parent: None,
                spans: node.spans,
                host,
                device: on_device.and_then(|found| found.times.stats().known()),
                share: share(host.total_ns, whole),
            };
            let parent = parent.map(|p| timeline.name(self.forest.nodes[p].0.name).to_owned());
            rows.push(StageRow { parent, ..row });
            self.push_rows(timeline, below, Some(at), whole, rows);
        }
    }

    /// Host time of the outermost spans `sync.*` below a node.
    fn sync_below(&self, timeline: &Timeline, below: &[Vec<usize>], at: usize) -> u64 {
        let own = |&at: &usize| {
            let (place, node) = &self.forest.nodes[at];
            if is_sync(timeline.name(place.name)) { node.host.total_ns() } else { self.sync_below(timeline, below, at) }
        };
        sum(below[at + 1].iter().map(own))
    }
}

fn set_apart(kind: Kind, durations: &mut Values) -> SetApart {
    let stats = durations.stats();
    SetApart { kind, iterations: stats.count, total_ns: stats.total_ns, p50_ns: stats.p50_ns }
}
