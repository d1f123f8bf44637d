//! One letter for each GPU: many of them at a glance.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::{Tone, tone};
use super::write::{self, piece};
use crate::state::Model;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How warm one place is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heat {
    Share(f64),
    Unknown,
    Lost,
}

/// Lines that the strip takes in `width` columns.
pub fn lines(model: &Model, width: u16) -> u16 {
    let (label, cells) = cells(model);
    let room = usize::from(width).saturating_sub(label.len()).max(1);
    u16::try_from(cells.len().div_ceil(room)).unwrap_or(u16::MAX)
}

/// Draws the strip: utilisation of the GPUs in their order, or how busy the lanes are where no GPU was read.
pub fn draw(area: Rect, frame: &mut Buffer, model: &Model) {
    let (label, cells) = cells(model);
    let room = usize::from(area.width).saturating_sub(label.len()).max(1);
    for (index, part) in cells.chunks(room).enumerate() {
        let head = if index == 0 { label.to_owned() } else { " ".repeat(label.len()) };
        let mut pieces = vec![piece(&head, Tone::Dim)];
        pieces.extend(part.iter().map(|heat| symbol(*heat)));
        write::line(area, frame, index, Line::from(pieces));
    }
}

fn cells(model: &Model) -> (&'static str, Vec<Heat>) {
    let share = |share: Option<f64>| share.map_or(Heat::Unknown, Heat::Share);
    if model.gpus.is_empty() {
        let busy = model.lanes.iter().map(|lane| share(lane.waiting().map(|waits| 1.0 - waits)));
        return ("busy  ", busy.collect());
    }
    let of = |gpu: &crate::state::Gpu| if gpu.lost { Heat::Lost } else { share(gpu.heat()) };
    ("util  ", model.gpus.iter().map(of).collect())
}

fn symbol(heat: Heat) -> Span<'static> {
    let (letter, as_tone) = match heat {
        Heat::Lost => ('✕', Tone::Bad),
        Heat::Unknown => ('·', Tone::Dim),
        Heat::Share(share) => {
            let step = (share.clamp(0.0, 1.0) * 7.0).round() as usize;
            (
                STEPS[step],
                if share >= 0.7 {
                    Tone::Good
                } else if share >= 0.35 {
                    Tone::Second
                } else {
                    Tone::Area
                },
            )
        }
    };
    Span::styled(letter.to_string(), tone(as_tone))
}
