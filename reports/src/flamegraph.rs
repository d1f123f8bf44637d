//! Flame graphs of wall time: every nanosecond of every iteration in one frame, waiting and residue included; and of CPU
//! time, from sampled stacks.
//!
//! Below the root stands one frame per lane (`rank1/target:0` from rank 1 on), below it the stages and what is nested
//! in them. Iterations of other kinds than `train` stand under a frame of their own, `[eval]` and the like. Widths are
//! host time; the counts of all stacks together are the sum of all iterations. Of CPU time, the functions stand below the
//! spans that were open, and widths are numbers of samples.

mod cpu;

use crate::error::{Error, Result};
use crate::forest::{Forest, Place};
use crate::stages::RESIDUE;
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Nanoseconds or samples by folded stack.
type Stacks = BTreeMap<String, u64>;

/// What the widths are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// Wall time by lane and span.
    #[default]
    Wall,
    /// Samples of the stack; a thread that waits is not sampled.
    Cpu,
}

impl Time {
    /// `wall` or `CPU`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "CPU",
        }
    }
}

/// What the graph shows, and its words.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which part of the timeline; all by default.
    pub window: Window,
    /// Wall time by default.
    pub time: Time,
    /// Heading. Default: `wall time by lane`.
    pub title: String,
    /// Line below it. Default: none.
    pub subtitle: Option<String>,
    /// Leave out the script that zooms and searches. Default: false.
    pub no_javascript: bool,
}

impl Default for Options {
    fn default() -> Self {
        let title = "wall time by lane".to_owned();
        Self { window: Window::default(), time: Time::Wall, title, subtitle: None, no_javascript: false }
    }
}

/// Nanoseconds by folded stack, `lane;stage;child`, or samples by `lane;spans;functions`; sorted by stack.
///
/// # Errors
/// [`Error::NothingRecorded`] if there is no iteration in the window, [`Error::NothingSampled`] if there is no sample,
/// [`Error::NoSuchLane`] if it asks for a lane that there is not.
pub fn folded(timeline: &Timeline, window: &Window, time: Time) -> Result<BTreeMap<String, u64>> {
    match time {
        Time::Wall => wall(timeline, window),
        Time::Cpu => cpu::folded(timeline, window),
    }
}

fn wall(timeline: &Timeline, window: &Window) -> Result<Stacks> {
    window.check_lanes(timeline)?;
    let mut trees: BTreeMap<(LaneId, Kind), Tree> = BTreeMap::new();
    walk::for_each_pass(timeline, window, |iteration, spans| {
        trees.entry((iteration.lane, iteration.kind)).or_default().add(iteration, spans);
    });
    let mut stacks = BTreeMap::new();
    for ((lane, kind), tree) in &trees {
        tree.fold(timeline, &root_of(timeline, *lane, *kind), &mut stacks);
    }
    stacks.retain(|_, ns| *ns > 0);
    if stacks.is_empty() {
        let which = if window.lanes.is_empty() { String::new() } else { format!(" on {}", window.lanes.join(", ")) };
        return Err(Error::NothingRecorded { which });
    }
    Ok(stacks)
}

/// The folded stacks as lines `stack count`, nanoseconds or samples, for other tools.
///
/// # Errors
/// As [`folded`].
pub fn folded_text(timeline: &Timeline, window: &Window, time: Time) -> Result<String> {
    Ok(lines(&folded(timeline, window, time)?).fold(String::new(), |text, line| text + &line + "\n"))
}

/// The flame graph as an SVG file that needs no network.
///
/// # Errors
/// As [`folded`], or if inferno cannot draw.
pub fn svg(timeline: &Timeline, options: &Options) -> Result<Vec<u8>> {
    let stacks = folded(timeline, &options.window, options.time)?;
    let lines: Vec<String> = lines(&stacks).collect();
    let mut drawing = inferno::flamegraph::Options::default();
    drawing.title.clone_from(&options.title);
    drawing.subtitle.clone_from(&options.subtitle);
    drawing.no_javascript = options.no_javascript;
    // Colours follow from names, so that two graphs of the same code look alike.
    drawing.deterministic = true;
    if options.time == Time::Wall {
        // Counts are whole nanoseconds; people read microseconds.
        drawing.factor = 1e-3;
        "µs".clone_into(&mut drawing.count_name);
        "Span:".clone_into(&mut drawing.name_type);
    }
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().map(String::as_str), &mut svg)?;
    Ok(svg)
}

fn lines(stacks: &BTreeMap<String, u64>) -> impl Iterator<Item = String> {
    stacks.iter().map(|(stack, ns)| format!("{stack} {ns}"))
}

/// Own times of all spans of one lane and kind of iteration.
#[derive(Default)]
struct Tree {
    own_ns: Forest<u64>,
    residue_ns: u64,
    /// Of the iteration at hand: the place and the own time of each span.
    places: Vec<(usize, u64)>,
}

impl Tree {
    /// Gives every span its own time (without that of its children), and the residue what is left of the iteration.
    fn add(&mut self, iteration: &Iteration, spans: &[Placed<'_>]) {
        self.places.clear();
        let mut left = iteration.duration_ns;
        for Placed { span, parent } in spans {
            let around = parent.map_or(&mut left, |p| &mut self.places[p].1);
            *around = around.saturating_sub(span.duration_ns);
            let parent = parent.map(|p| self.places[p].0);
            let at = self.own_ns.at(Place { parent, name: span.name, index: span.index });
            self.places.push((at, span.duration_ns));
        }
        for (at, own_ns) in &self.places {
            self.own_ns.nodes[*at].1 += own_ns;
        }
        self.residue_ns += left;
    }

    fn fold(&self, timeline: &Timeline, root: &str, stacks: &mut BTreeMap<String, u64>) {
        let mut paths: Vec<String> = Vec::with_capacity(self.own_ns.nodes.len());
        for (place, own_ns) in &self.own_ns.nodes {
            let above = place.parent.map_or(root, |p| paths[p].as_str());
            let path = format!("{above};{}", frame(timeline.name(place.name), place.index));
            *stacks.entry(path.clone()).or_default() += own_ns;
            paths.push(path);
        }
        *stacks.entry(format!("{root};{RESIDUE}")).or_default() += self.residue_ns;
    }
}

fn lane_root(timeline: &Timeline, lane: LaneId) -> String {
    let (name, rank) = timeline.lane(lane).map_or(("", 0), |lane| (lane.name.as_str(), lane.rank));
    if rank > 0 { format!("rank{rank}/{}", frame(name, None)) } else { frame(name, None) }
}

fn root_of(timeline: &Timeline, lane: LaneId, kind: Kind) -> String {
    let mut root = lane_root(timeline, lane);
    if kind != Kind::Train {
        let _ = write!(root, ";[{}]", kind.as_str());
    }
    root
}

/// A name that the folded format cannot misread: `;` parts frames, and a number after a space would be a count.
fn frame(name: &str, index: Option<u64>) -> String {
    let safe = |c: char| match c {
        ';' => ':',
        c if c.is_whitespace() => '_',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let mut text: String = name.chars().map(safe).collect();
    if text.is_empty() {
        text.push('?');
    }
    if text.starts_with('#') {
        text.insert(0, '_');
    }
    if let Some(index) = index {
        let _ = write!(text, "[{index}]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn frames_cannot_be_misread() {
        assert_eq!(frame("layer 3", None), "layer_3");
        assert_eq!(frame("a;b\u{1b}[0m\n", None), "a:b\u{fffd}[0m_");
        assert_eq!(frame("drafter.layer", Some(3)), "drafter.layer[3]");
        assert_eq!(frame("", None), "?");
        assert_eq!(frame("# x", None), "_#_x");
    }
}
