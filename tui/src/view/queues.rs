//! The queues between the lanes: how full, now and over time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{format, spark, text};
use crate::state::{Queue, resample};

/// Draws one queue after another, each `tall` lines.
pub fn draw(area: Rect, frame: &mut Buffer, queues: &[Queue], tall: u16) {
    let name = queues.iter().map(|queue| text::width(&text::clean(&title(queue)))).max().unwrap_or(0).clamp(6, 24);
    for (index, queue) in queues.iter().enumerate() {
        let at = index * usize::from(tall);
        let (words, full) = words(queue);
        let numbers = vec![
            piece(&text::left(&title(queue), name), Tone::Strong),
            Span::raw("  "),
            piece(&text::left(&words, 16), if full { Tone::Warn } else { Tone::Plain }),
            piece(&text::left(&format!("mean {}", format::three_digits(queue.row.mean)), 12), Tone::Dim),
        ];
        let left = u16::try_from(name + 31).unwrap_or(u16::MAX);
        let Some(place) = graph(area, at, left, tall) else { continue };
        write::line(area, frame, at, Line::from(numbers));
        let curve = resample(&queue.depth, usize::from(place.width));
        spark::draw(place, frame, &curve, queue.top(), tone(Tone::Area));
    }
}

fn graph(area: Rect, at: usize, left: u16, tall: u16) -> Option<Rect> {
    let at = u16::try_from(at).ok()?;
    let fits = at + tall <= area.height && left < area.width;
    fits.then(|| Rect::new(area.x + left, area.y + at, area.width - left, tall))
}

fn title(queue: &Queue) -> String {
    if queue.row.rank == 0 { queue.row.queue.clone() } else { format!("{} r{}", queue.row.queue, queue.row.rank) }
}

/// `3 of 4 items`, and whether that is full.
fn words(queue: &Queue) -> (String, bool) {
    let last = format::short(queue.row.last);
    match queue.capacity {
        Some(most) => (format!("{last} of {} {}", format::short(most), queue.unit), queue.row.last >= most),
        None => (format!("{last} {}", queue.unit), false),
    }
}
