//! The batches that lanes hand to one another, as marks below a lane and as a list.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::format;
use super::theme::{self, Tone};
use super::write::{self, piece};
use crate::state::{Gantt, HandOff};

/// `▾` where a batch was put and `▴` where one was taken, with its number where there is room; a batch has one colour.
pub fn draw(place: Rect, frame: &mut Buffer, hand_offs: &[HandOff], column_of: impl Fn(i64) -> u16) {
    let mut free = 0;
    for hand_off in hand_offs {
        let column = column_of(hand_off.time_ns);
        if column < free || column >= place.width {
            continue;
        }
        let mark = if hand_off.put { "▾" } else { "▴" };
        let words = format!("{mark}{}", number(hand_off.id));
        let room = usize::from(place.width - column);
        let words = if words.chars().count() <= room { words } else { mark.to_owned() };
        frame.set_string(place.x + column, place.y, &words, theme::batch(hand_off.id));
        free = column + words.chars().count() as u16 + 1;
    }
}

/// A batch's number among those of its maker: the bits above it say which lane made it.
fn number(id: u64) -> u64 {
    id & ((1 << 40) - 1)
}

/// Draws the batches that began and ended their way in the stretch.
pub fn draw_journeys(area: Rect, frame: &mut Buffer, gantt: &Gantt) {
    let words = "newest first: from, to, and the time between";
    write::heading(area, frame, 0, "Hand-offs", words);
    if gantt.journeys.is_empty() {
        write::line(area, frame, 1, Line::from(piece("none begins and ends in this stretch", Tone::Dim)));
    }
    for (index, journey) in gantt.journeys.iter().take(usize::from(area.height.saturating_sub(1))).enumerate() {
        let waited = format::nanoseconds(journey.waited_ns as f64);
        let pieces = vec![
            Span::styled(format!("batch {:<8} ", number(journey.id)), theme::batch(journey.id)),
            piece(&format!("{} ▸ {}", journey.from, journey.to), Tone::Plain),
            piece(&format!("   {waited}"), Tone::Dim),
        ];
        write::line(area, frame, index + 1, Line::from(pieces));
    }
}
