//! CPU samples under the lane and the spans that were open when they hit.

use super::stacks::ROOT;
use super::{By, Graph, Time};
use crate::passes::Take;
use crate::scope::Scope;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Kind, LaneId, NameId, StackSample};
use std::collections::HashMap;

/// Gathers samples by lane, spans and functions. A thread that no lane claims stands under its own name; it belongs to no
/// lane, so a window that asks for lanes leaves it out.
pub(super) struct Cpu {
    scope: Scope,
    /// Samples by where they hit: many hit the same place.
    stacks: HashMap<(Option<LaneId>, NameId, Vec<NameId>), u64>,
}

impl Cpu {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, stacks: HashMap::new() }
    }

    pub(super) fn finish(self, timeline: &Timeline, by: By) -> Graph {
        let mut graph = Graph::new(Time::Cpu);
        for ((lane, thread, names), samples) in self.stacks {
            let root = match lane {
                Some(lane) => graph.root(timeline, lane, Kind::Train, by, 0),
                None => graph.stacks.on(ROOT, timeline.name(thread)),
            };
            let stacks = &mut graph.stacks;
            let node = names.iter().fold(root, |node, name| stacks.on(node, timeline.name(*name)));
            stacks.add(node, samples);
        }
        graph
    }
}

impl Take for Cpu {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
    }

    fn stack(&mut self, sample: &StackSample) {
        let inside = match sample.lane {
            Some(lane) => self.scope.has_lane(lane),
            None => self.scope.is_everyone(),
        };
        if inside && self.scope.has_time(sample.time_ns) {
            // The thread's name counts only where no lane stands for it.
            let thread = if sample.lane.is_some() { NameId(0) } else { sample.thread };
            let names = sample.spans.iter().chain(&sample.frames).copied().collect();
            *self.stacks.entry((sample.lane, thread, names)).or_default() += 1;
        }
    }
}
