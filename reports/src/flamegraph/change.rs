//! The change from one run to another, as a flame graph: as wide as the run, red where it takes longer than the base.
//!
//! The base is scaled first, or a longer run would be red all over: each lane's base to the run's number of iterations of
//! that kind; of CPU samples, the whole base to the run's number of samples.
//!
//! inferno colours the last frame of a line by that line's own change, and others not at all. So every frame here has a
//! line of its own whose change is that of all that stands on it. A line holds a count of the base and one of the run; a
//! frame may have no time of its own and yet a change, so the base's count is `run - change`, negative ones as inferno
//! takes them back: wrapped round 2^64.

use super::folded::frame;
use super::stacks::{ROOT, Stacks};
use super::svg::{Visible, draw, drawing};
use super::{Graph, Options, Time};
use crate::error::Result;
use std::io::{self, Write};

/// The frame around everything: inferno prints no change for its own.
const WHOLE: &str = "total";

/// Two graphs, frame by frame.
#[derive(Clone, Debug)]
pub struct Change {
    time: Time,
    /// Weights of the run.
    stacks: Stacks,
    /// Own weights of the base, scaled, by frame.
    base: Vec<u64>,
}

impl Change {
    /// What changed from `base` to `run`.
    #[must_use]
    pub fn between(base: &Graph, run: &Graph) -> Self {
        let mut stacks = Stacks::default();
        let whole = stacks.on(ROOT, WHOLE);
        let places = place(&run.stacks, &mut stacks, whole);
        for (node, place) in run.stacks.nodes.iter().zip(&places) {
            stacks.add(*place, node.own);
        }
        let scales = scales(base, run);
        let places = place(&base.stacks, &mut stacks, whole);
        let (mut weights, mut left) = (vec![0; stacks.nodes.len()], 1 << 61);
        for ((node, place), scale) in base.stacks.nodes.iter().zip(&places).zip(&scales) {
            let weight = scale.of(node.own).min(left);
            left -= weight;
            weights[*place as usize] += weight;
        }
        Self { time: run.time, stacks, base: weights }
    }

    /// The weight of the base, scaled, and that of the run.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        (self.base.iter().sum(), self.stacks.totals()[ROOT as usize])
    }

    /// Stacks of the base that the run does not have: they are nowhere in the picture.
    #[must_use]
    pub fn vanished(&self) -> usize {
        let totals = self.stacks.totals();
        self.base.iter().zip(totals).filter(|(base, run)| **base > 0 && *run == 0).count()
    }

    /// Lines `stack base run`, for other tools; the base is scaled.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_folded(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut outcome = Ok(());
        self.stacks.walk_paths(
            |_| true,
            |node, path| {
                let (base, run) = (self.base[node as usize], self.stacks.nodes[node as usize].own);
                if (base > 0 || run > 0) && outcome.is_ok() {
                    outcome = writeln!(out, "{path} {base} {run}");
                }
            },
        );
        outcome
    }

    /// The picture.
    ///
    /// # Errors
    /// If inferno cannot draw.
    pub fn svg(&self, options: &Options) -> Result<Vec<u8>> {
        let (visible, changes, mut lines) = (Visible::of(&self.stacks), self.changes(), Vec::new());
        self.stacks.walk_paths(
            |node| visible.shows(node) && visible.has_width(node),
            |node, path| {
                let width = visible.width(node);
                let base = i128::from(width) - i128::from(changes[node as usize]);
                lines.push(format!("{path} {} {width}", base as u64));
            },
        );
        let mut drawing = drawing(options);
        if self.time != Time::Cpu {
            // inferno's percentages of a change hold only without a factor.
            "ns".clone_into(&mut drawing.count_name);
            "Span:".clone_into(&mut drawing.name_type);
        }
        draw(drawing, &lines)
    }

    /// By how much each frame, with what stands on it, has become longer.
    fn changes(&self) -> Vec<i64> {
        let own = self.stacks.nodes.iter().zip(&self.base);
        let mut changes: Vec<i64> = own.map(|(node, base)| node.own.cast_signed() - base.cast_signed()).collect();
        for at in (1..changes.len()).rev() {
            changes[self.stacks.nodes[at].parent as usize] += changes[at];
        }
        changes
    }
}

/// Where a graph's frames stand in the common tree.
fn place(from: &Stacks, into: &mut Stacks, whole: u32) -> Vec<u32> {
    let names: Vec<String> = from.names.iter().map(|name| frame(name)).collect();
    let mut places = vec![whole];
    for node in from.nodes.iter().skip(1) {
        places.push(into.on(places[node.parent as usize], &names[node.name as usize]));
    }
    places
}

/// A factor, as a fraction.
#[derive(Clone, Copy)]
struct Scale(u64, u64);

impl Scale {
    fn of(self, weight: u64) -> u64 {
        let (scaled, by) = (u128::from(weight) * u128::from(self.0), u128::from(self.1));
        u64::try_from((scaled + by / 2) / by).unwrap_or(u64::MAX)
    }
}

/// By what the weights of each of the base's frames are multiplied.
fn scales(base: &Graph, run: &Graph) -> Vec<Scale> {
    let whole = match base.time {
        Time::Cpu => Scale(run.total(), base.total().max(1)),
        _ => Scale(1, 1),
    };
    let mut scales: Vec<Scale> = Vec::with_capacity(base.stacks.nodes.len());
    for (at, node) in base.stacks.nodes.iter().enumerate() {
        let inherited = scales.get(node.parent as usize).copied().unwrap_or(whole);
        let own = base.iterations.get(&(at as u32)).copied().filter(|count| *count > 0);
        let theirs = own.and_then(|count| Some((find(base, at as u32, run)?, count)));
        let scale =
            theirs.and_then(|(node, count)| Some(Scale(*run.iterations.get(&node).filter(|c| **c > 0)?, count)));
        scales.push(scale.unwrap_or(inherited));
    }
    scales
}

/// The frame of `run` that stands where this one stands in `base`.
fn find(base: &Graph, node: u32, run: &Graph) -> Option<u32> {
    let mut path: Vec<u32> = base.stacks.upwards(node).collect();
    path.reverse();
    path.into_iter().try_fold(ROOT, |at, node| run.stacks.find(at, base.stacks.name(node)))
}
