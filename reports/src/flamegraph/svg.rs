//! The picture, drawn by inferno.

use super::stacks::{ROOT, Stacks};
use super::{Graph, Options, Time};
use crate::error::Result;

/// Frames narrower than this part of the whole are drawn into the one below: nobody could see them.
const NARROWEST: u64 = 20_000;

impl Graph {
    /// The graph as an SVG file that needs no network.
    ///
    /// # Errors
    /// If inferno cannot draw.
    pub fn svg(&self, options: &Options) -> Result<Vec<u8>> {
        let (stacks, mut lines) = (self.plain(), Vec::new());
        let visible = Visible::of(&stacks);
        stacks.walk_paths(
            |node| visible.shows(node),
            |node, path| {
                if visible.width(node) > 0 {
                    lines.push(format!("{path} {}", visible.width(node)));
                }
            },
        );
        let mut drawing = drawing(options);
        if self.time != Time::Cpu {
            // Counts are whole nanoseconds; people read microseconds.
            drawing.factor = 1e-3;
            "µs".clone_into(&mut drawing.count_name);
            "Span:".clone_into(&mut drawing.name_type);
        }
        draw(drawing, &lines)
    }
}

/// What inferno is told for every graph.
pub(super) fn drawing(options: &Options) -> inferno::flamegraph::Options<'static> {
    let mut drawing = inferno::flamegraph::Options::default();
    drawing.title.clone_from(&options.title);
    drawing.subtitle.clone_from(&options.subtitle);
    drawing.no_javascript = options.no_javascript;
    // Colours follow from names, so that two graphs of the same code look alike.
    drawing.deterministic = true;
    drawing
}

/// Draws lines that are in the order in which their frames stand.
///
/// inferno would sort them as texts, which puts `a.b` between `a` and `a;c` and so draws `a` in two pieces. For a chart
/// over time it keeps the order, and turns it round.
pub(super) fn draw(mut drawing: inferno::flamegraph::Options<'_>, lines: &[String]) -> Result<Vec<u8>> {
    drawing.flame_chart = true;
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().rev().map(String::as_str), &mut svg)?;
    Ok(svg)
}

/// Which frames are wide enough to be seen.
pub(super) struct Visible {
    totals: Vec<u64>,
    /// Own weight, and that of what stands on it and is too narrow.
    widths: Vec<u64>,
}

impl Visible {
    pub(super) fn of(stacks: &Stacks) -> Self {
        let totals = stacks.totals();
        let mut visible = Self { widths: stacks.nodes.iter().map(|node| node.own).collect(), totals };
        for (at, node) in stacks.nodes.iter().enumerate().skip(1) {
            let parent = node.parent;
            if !visible.shows(at as u32) && (parent == ROOT || visible.shows(parent)) {
                visible.widths[parent as usize] += visible.totals[at];
            }
        }
        visible
    }

    pub(super) fn shows(&self, node: u32) -> bool {
        u128::from(self.totals[node as usize]) * u128::from(NARROWEST) >= u128::from(self.totals[ROOT as usize])
    }

    /// Whether there is anything of a frame.
    pub(super) fn has_width(&self, node: u32) -> bool {
        self.totals[node as usize] > 0
    }

    /// The length of a frame's own line.
    pub(super) fn width(&self, node: u32) -> u64 {
        self.widths[node as usize]
    }
}
