//! Collects the durations of every stage of every iteration, and summarises them at the end.

use super::{LaneTable, RESIDUE, ROLES, SetApart, StageRow, StageTable};
use crate::forest::{Forest, Place};
use crate::stats::{Stats, share};
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind};
use std::collections::BTreeMap;

/// One kind of span at one place below its lane.
#[derive(Default)]
struct Node {
    depth: u8,
    spans: u64,
    host: Vec<u64>,
    device: Vec<u64>,
    /// Sums of the iteration at hand; `None` if it has not come by here.
    now: Option<(u64, Option<u64>)>,
}

/// What is known of one lane so far.
#[derive(Default)]
struct Lane {
    forest: Forest<Node>,
    /// Nodes that the iteration at hand has touched.
    touched: Vec<usize>,
    totals: Vec<u64>,
    device_totals: Vec<u64>,
    residues: Vec<u64>,
    overfull: u64,
    cpu_ns: u64,
    wall_with_cpu_ns: u64,
    tokens: Option<u64>,
    extent_ns: Option<(i64, i64)>,
    set_apart: BTreeMap<Kind, Vec<u64>>,
}

pub(super) fn gather(timeline: &Timeline, window: &Window) -> StageTable {
    let mut lanes: Vec<Lane> = timeline.lanes.iter().map(|_| Lane::default()).collect();
    let mut places = Vec::new();
    let strays = walk::for_each_pass(timeline, window, |iteration, spans| {
        let Some(lane) = lanes.get_mut(iteration.lane.0 as usize) else { return };
        if iteration.kind == Kind::Train {
            lane.add_spans(spans, &mut places);
            lane.add_iteration(iteration);
        } else {
            lane.set_apart.entry(iteration.kind).or_default().push(iteration.duration_ns);
        }
    });
    let recorded = |lane: &Lane| !lane.totals.is_empty() || !lane.set_apart.is_empty();
    let lanes = lanes.into_iter().zip(&timeline.lanes).filter(|(lane, _)| recorded(lane));
    let lanes = lanes.map(|(lane, who)| LaneTable {
        lane: who.name.clone(),
        device: who.device.clone(),
        rank: who.rank,
        ..lane.table(timeline)
    });
    let mut lanes: Vec<LaneTable> = lanes.collect();
    lanes.sort_by_cached_key(pipeline_order);
    StageTable { lanes, strays }
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
            let (host_ns, device_ns) = node.now.get_or_insert_default();
            *host_ns += span.duration_ns;
            if let Some(device) = span.device {
                *device_ns.get_or_insert_default() += device.duration_ns;
            }
        }
    }

    fn add_iteration(&mut self, iteration: &Iteration) {
        let (mut stages, mut device) = (0, None);
        for at in self.touched.drain(..) {
            let (_, node) = &mut self.forest.nodes[at];
            let (host_ns, device_ns) = node.now.take().unwrap_or_default();
            node.host.push(host_ns);
            node.device.extend(device_ns);
            if node.depth == 0 {
                stages += host_ns;
                device = device_ns.map_or(device, |ns| Some(device.unwrap_or(0) + ns));
            }
        }
        self.totals.push(iteration.duration_ns);
        self.device_totals.extend(device);
        self.residues.push(iteration.duration_ns.saturating_sub(stages));
        self.overfull += u64::from(stages > iteration.duration_ns);
        if let Some(cpu_ns) = iteration.cpu_ns {
            self.cpu_ns += cpu_ns;
            self.wall_with_cpu_ns += iteration.duration_ns;
        }
        if let Some(tokens) = iteration.tokens {
            self.tokens = Some(self.tokens.unwrap_or(0) + tokens);
        }
        let (begin, end) = (iteration.begin_ns, walk::end_ns(iteration));
        self.extent_ns = Some(self.extent_ns.map_or((begin, end), |(first, last)| (first.min(begin), last.max(end))));
    }

    fn table(mut self, timeline: &Timeline) -> LaneTable {
        let total = Stats::of(&mut self.totals);
        let mut below = vec![Vec::new(); self.forest.nodes.len() + 1];
        for (at, (place, _)) in self.forest.nodes.iter().enumerate() {
            below[place.parent.map_or(0, |p| p + 1)].push(at);
        }
        let mut rows = Vec::with_capacity(below.len());
        self.push_rows(timeline, &below, None, total.total_ns, &mut rows);
        if total.count > 0 {
            let host = Stats::of(&mut self.residues);
            let share = share(host.total_ns, total.total_ns);
            rows.push(StageRow { stage: RESIDUE.into(), depth: 0, parent: None, spans: 0, host, device: None, share });
        }
        LaneTable {
            iterations: total.count,
            set_apart: self.set_apart.iter_mut().map(|(&kind, durations)| set_apart(kind, durations)).collect(),
            total,
            total_device: Stats::of(&mut self.device_totals).known(),
            rows,
            cpu_share: (self.wall_with_cpu_ns > 0).then(|| share(self.cpu_ns, self.wall_with_cpu_ns)),
            tokens: self.tokens,
            extent_ns: self.extent_ns,
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
            let (place, node) = &mut self.forest.nodes[at];
            let host = Stats::of(&mut node.host);
            let row = StageRow {
                stage: timeline.name(place.name).to_owned(),
                depth: node.depth,
                parent: None,
                spans: node.spans,
                host,
                device: Stats::of(&mut node.device).known(),
                share: share(host.total_ns, whole),
            };
            let parent = parent.map(|p| timeline.name(self.forest.nodes[p].0.name).to_owned());
            rows.push(StageRow { parent, ..row });
            self.push_rows(timeline, below, Some(at), whole, rows);
        }
    }
}

fn set_apart(kind: Kind, durations: &mut [u64]) -> SetApart {
    let stats = Stats::of(durations);
    SetApart { kind, iterations: stats.count, total_ns: stats.total_ns, p50_ns: stats.p50_ns }
}
