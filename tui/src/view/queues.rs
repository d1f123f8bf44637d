//! The queues between the lanes: how full, now and over time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{format, spark, text};
use crate::state::{Extent, Queue, State, View, resample};

/// The view of the queues alone: as tall as there is room.
pub fn draw_view(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let queues = state.queues();
    let order =
        state.sorted_by(View::Queues).filter(|by| *by != "pipeline").map_or(String::new(), |by| format!(", by {by}"));
    write::heading(area, frame, 0, "Queues", &format!("depth over time, {}{order}", state.window.title()));
    let place = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if queues.is_empty() {
        write::line(place, frame, 0, Line::from(piece("no counter queue.*.depth in this window", Tone::Dim)));
        return Extent::default();
    }
    let count = u16::try_from(queues.len()).unwrap_or(u16::MAX);
    // A line between two graphs, where they are tall enough to spare it.
    let each = (place.height / count.max(1)).clamp(1, 9);
    let page = usize::from((place.height / each).max(1));
    let last = queues.len().saturating_sub(page);
    let first = state.scroll.min(last);
    let shown = &queues[first..(first + page).min(queues.len())];
    let tall = if each >= 3 { each - 1 } else { each };
    for (index, queue) in shown.iter().enumerate() {
        let Ok(index) = u16::try_from(index) else { break };
        let at =
            Rect { y: place.y + index * each, height: tall.min(place.height.saturating_sub(index * each)), ..place };
        draw(at, frame, &[queue], tall);
        if tall >= 3 {
            let row = &queue.row;
            let full = queue.capacity.filter(|most| *most > 0.0).map(|most| format::percent(row.mean / most));
            let words = format!("max {}, {} readings", format::short(row.max), format::whole(row.samples as f64));
            write::line(at, frame, 1, Line::from(piece(&format!("  {words}"), Tone::Dim)));
            write::line(
                at,
                frame,
                2,
                Line::from(piece(&format!("  on average {} full", format::known(full, |f| f)), Tone::Dim)),
            );
        }
    }
    Extent { page, last, ..Extent::default() }
}

/// Draws one queue after another, each `tall` lines.
pub fn draw(area: Rect, frame: &mut Buffer, queues: &[&Queue], tall: u16) {
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
    let fits = at.saturating_add(tall) <= area.height && left < area.width;
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
