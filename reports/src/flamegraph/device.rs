//! Device time: what each lane's stream did, and why nothing ran in between.
//!
//! Where a lane uses several streams, each has a frame of its own, `stream 7`; one of another device than the lane's is
//! called after that, too. Frames are the lane's spans as long as their device times, and below `gap` the time between device spans by what the
//! host did meanwhile, as [`crate::gaps`] tells it. Where a stage is timed only now and then, the rest of it is not here.

use super::wall::Tree;
use super::{By, Graph, Time};
use crate::gaps::{LaneGaps, Timed, Walkers};
use crate::passes::{Passes, Take};
use crate::scope::Scope;
use crate::words::Words;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, Span, StreamId};
use std::collections::{BTreeMap, BTreeSet};

/// Learns what has device times at all, and on which streams: the first of two times through the recording.
#[derive(Default)]
pub(super) struct Learnt {
    /// Stages.
    timed: Timed,
    /// By lane, also of what is nested in stages.
    streams: BTreeMap<LaneId, BTreeSet<Option<StreamId>>>,
}

impl Take for Learnt {
    fn span(&mut self, span: &Span) {
        self.timed.learn(span);
        if let Some(device) = span.device {
            self.streams.entry(span.lane).or_default().insert(device.stream);
        }
    }
}

/// Gathers device time.
pub(super) struct Device {
    scope: Scope,
    learnt: Learnt,
    words: Words,
    passes: Passes,
    trees: BTreeMap<(LaneId, Kind, Option<StreamId>), Tree>,
    gaps: BTreeMap<LaneId, Walkers>,
}

impl Device {
    pub(super) fn new(scope: Scope, learnt: Learnt) -> Self {
        let (words, passes) = (Words::default(), Passes::default());
        Self { scope, learnt, words, passes, trees: BTreeMap::new(), gaps: BTreeMap::new() }
    }

    pub(super) fn finish(self, timeline: &Timeline, by: By) -> Graph {
        let mut graph = Graph::new(Time::Device);
        let several = self.several();
        for ((lane, kind, stream), tree) in self.trees {
            // An iteration counts once, however many streams it has.
            let first = self.learnt.streams.get(&lane).and_then(BTreeSet::first) == Some(&stream);
            let root = graph.root(timeline, lane, kind, by, if first { tree.iterations } else { 0 });
            let root = on_stream(&mut graph, timeline, several.contains(&lane), (lane, stream), root);
            tree.put(timeline, root, &mut graph.stacks);
        }
        for (lane, walkers) in self.gaps {
            for (stream, gaps) in walkers.finish(timeline, lane) {
                let root = graph.root(timeline, lane, Kind::Train, by, 0);
                let root = on_stream(&mut graph, timeline, several.contains(&lane), (lane, stream), root);
                put_gaps(&mut graph, root, &gaps);
            }
        }
        graph
    }

    /// The lanes that have times on several streams.
    fn several(&self) -> BTreeSet<LaneId> {
        let mut streams: BTreeMap<LaneId, BTreeSet<Option<StreamId>>> = BTreeMap::new();
        for ((lane, _, stream), _) in self.trees.iter().filter(|(_, tree)| !tree.is_empty()) {
            streams.entry(*lane).or_default().insert(*stream);
        }
        streams.into_iter().filter(|(_, streams)| streams.len() > 1).map(|(lane, _)| lane).collect()
    }
}

/// The frame of a stream, where its lane has several; else `root` itself.
fn on_stream(
    graph: &mut Graph,
    timeline: &Timeline,
    several: bool,
    (lane, stream): (LaneId, Option<StreamId>),
    root: u32,
) -> u32 {
    if !several {
        return root;
    }
    let name = match stream.and_then(|stream| timeline.stream(stream)) {
        None => "stream not known".to_owned(),
        Some(stream) if timeline.lane(lane).is_some_and(|lane| lane.device == stream.device) => {
            format!("stream {}", stream.number)
        }
        Some(stream) => format!("stream {} of {}", stream.number, stream.device),
    };
    graph.stacks.on(root, &name)
}

fn put_gaps(graph: &mut Graph, root: u32, gaps: &LaneGaps) {
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
        let Self { scope, learnt, words, passes, trees, gaps } = self;
        passes.iteration(iteration, |iteration, spans| {
            if !scope.has_end(iteration) {
                return;
            }
            for stream in learnt.streams.get(&iteration.lane).into_iter().flatten() {
                let tree = trees.entry((iteration.lane, iteration.kind, *stream)).or_default();
                let its = |span: &Span| span.device.filter(|device| device.stream == *stream);
                tree.add(iteration, spans, |span| its(span).map_or(0, |device| device.duration_ns));
            }
            if !learnt.timed.streams(iteration.lane).is_empty() {
                gaps.entry(iteration.lane).or_default().add(words, &learnt.timed, iteration, spans);
            }
        });
    }
}
