//! Wall time by lane and span: every nanosecond of every iteration in one frame, waits and residue included.

use super::stacks::{ROOT, Stacks};
use super::{By, Graph, Time};
use crate::forest::{Forest, Place};
use crate::passes::{Passes, Take};
use crate::scope::Scope;
use crate::stages::RESIDUE;
use crate::walk::Placed;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, Span};
use std::collections::BTreeMap;

/// Gathers wall time.
pub(super) struct Wall {
    scope: Scope,
    passes: Passes,
    trees: BTreeMap<(LaneId, Kind), Tree>,
}

impl Wall {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, passes: Passes::default(), trees: BTreeMap::new() }
    }

    pub(super) fn finish(self, timeline: &Timeline, by: By) -> Graph {
        let mut graph = Graph::new(Time::Wall);
        for ((lane, kind), tree) in self.trees {
            let root = graph.root(timeline, lane, kind, by, tree.iterations);
            tree.put(timeline, root, &mut graph.stacks);
            let residue = graph.stacks.on(root, RESIDUE);
            graph.stacks.add(residue, tree.left_ns);
        }
        graph
    }
}

impl Take for Wall {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.scope.has_lane(lane)
    }

    fn span(&mut self, span: &Span) {
        if self.scope.has_lane(span.lane) {
            self.passes.span(span);
        }
    }

    fn iteration(&mut self, iteration: &Iteration) {
        if !self.scope.has_lane(iteration.lane) {
            return;
        }
        let (scope, trees) = (&self.scope, &mut self.trees);
        self.passes.iteration(iteration, |iteration, spans| {
            if scope.has_end(iteration) {
                let tree = trees.entry((iteration.lane, iteration.kind)).or_default();
                tree.add(iteration, spans, |span| span.duration_ns);
            }
        });
    }
}

/// Own times of all spans of one lane and kind of iteration.
#[derive(Default)]
pub(super) struct Tree {
    own_ns: Forest<u64>,
    /// What the stages leave of the iterations.
    left_ns: u64,
    pub iterations: u64,
    /// Of the iteration at hand: the place and the own time of each span.
    places: Vec<(usize, u64)>,
}

impl Tree {
    /// Gives every span its own time (without that of its children), and the residue what is left of the iteration.
    pub(super) fn add(&mut self, iteration: &Iteration, spans: &[Placed<'_>], length: impl Fn(&Span) -> u64) {
        self.places.clear();
        self.iterations += 1;
        let mut left = iteration.duration_ns;
        for Placed { span, parent } in spans {
            let around = parent.map_or(&mut left, |p| &mut self.places[p].1);
            *around = around.saturating_sub(length(span));
            let parent = parent.map(|p| self.places[p].0);
            let at = self.own_ns.at(Place { parent, name: span.name, index: span.index });
            self.places.push((at, length(span)));
        }
        for (at, own_ns) in &self.places {
            let sum = &mut self.own_ns.nodes[*at].1;
            *sum = sum.saturating_add(*own_ns);
        }
        self.left_ns = self.left_ns.saturating_add(left);
    }

    /// Whether no span has any time.
    pub(super) fn is_empty(&self) -> bool {
        self.own_ns.nodes.iter().all(|(_, own_ns)| *own_ns == 0)
    }

    /// Puts the spans' own times on `root`.
    pub(super) fn put(&self, timeline: &Timeline, root: u32, stacks: &mut Stacks) {
        debug_assert!(root != ROOT, "a lane stands below its spans");
        let mut nodes: Vec<u32> = Vec::with_capacity(self.own_ns.nodes.len());
        for (place, own_ns) in &self.own_ns.nodes {
            let parent = place.parent.map_or(root, |parent| nodes[parent]);
            let name = timeline.name(place.name);
            let node = match place.index {
                Some(index) => stacks.on(parent, &format!("{name}[{index}]")),
                None => stacks.on(parent, name),
            };
            stacks.add(node, *own_ns);
            nodes.push(node);
        }
    }
}
