//! Device time: what each lane's stream did, and why nothing ran in between.
//!
//! Frames are the lane's spans as long as their device times, and below `gap` the time between device spans by what the
//! host did meanwhile, as [`crate::gaps`] tells it. Where a stage is timed only now and then, the rest of it is not here.

use super::wall::Tree;
use super::{By, Graph, Time};
use crate::gaps::{Timed, Walker};
use crate::passes::{Passes, Take};
use crate::scope::Scope;
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, Span};
use std::collections::BTreeMap;

/// Learns which stages have device times at all: the first of two times through the stream.
#[derive(Default)]
pub(super) struct Stages(pub Timed);

impl Take for Stages {
    fn span(&mut self, span: &Span) {
        self.0.learn(span);
    }
}

/// Gathers device time.
pub(super) struct Device {
    scope: Scope,
    timed: Timed,
    words: Words,
    passes: Passes,
    trees: BTreeMap<(LaneId, Kind), Tree>,
    gaps: BTreeMap<LaneId, Walker>,
}

impl Device {
    pub(super) fn new(scope: Scope, timed: Timed) -> Self {
        let (words, passes) = (Words::default(), Passes::default());
        Self { scope, timed, words, passes, trees: BTreeMap::new(), gaps: BTreeMap::new() }
    }

    pub(super) fn finish(self, timeline: &Timeline, by: By) -> Graph {
        let mut graph = Graph::new(Time::Device);
        for ((lane, kind), tree) in self.trees {
            let root = graph.root(timeline, lane, kind, by, tree.iterations);
            tree.put(timeline, root, &mut graph.stacks);
        }
        for (lane, walker) in self.gaps {
            let Some(gaps) = walker.finish(timeline, lane) else { continue };
            let root = graph.root(timeline, lane, Kind::Train, by, 0);
            let causes = [
                ("waiting for input", gaps.input_ns),
                ("waiting for room", gaps.room_ns),
                ("sync", gaps.sync_ns),
                ("launch-bound", gaps.launch_ns),
            ];
            for (cause, ns) in causes.into_iter().filter(|(_, ns)| *ns > 0) {
                let gap = graph.stacks.on(root, "gap");
                let node = graph.stacks.on(gap, cause);
                graph.stacks.add(node, ns);
            }
        }
        graph
    }
}

impl Take for Device {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
        self.words.texts(timeline);
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
        let Self { scope, timed, words, passes, trees, gaps } = self;
        passes.iteration(iteration, |iteration, spans| {
            if !scope.has_end(iteration) {
                return;
            }
            let tree = trees.entry((iteration.lane, iteration.kind)).or_default();
            tree.add(iteration, spans, |span| span.device.map_or(0, |device| device.duration_ns));
            if timed.has_lane(iteration.lane) {
                gaps.entry(iteration.lane).or_default().add(words, timed, iteration, spans);
            }
        });
    }
}
