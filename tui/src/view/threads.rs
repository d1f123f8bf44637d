//! CPU time by thread, as `top -H` shows it, with what each lane's thread is in.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::{Tone, tone};
use super::write::{self, Field, piece};
use super::{format, spark, text};
use crate::state::{Extent, State, Thread, View, resample};

/// Draws the table from the line that is scrolled to, and what the process and the profiler take above it.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let head = draw_process(area, frame, state);
    let area = Rect { y: area.y + head, height: area.height.saturating_sub(head), ..area };
    let threads = state.threads();
    if threads.is_empty() {
        write::line(area, frame, 0, Line::from(piece("no counter thread.*.cpu in this window", Tone::Dim)));
        return Extent::default();
    }
    let name = threads.iter().map(|thread| text::width(&text::clean(&title(thread)))).max().unwrap_or(0).clamp(8, 28);
    let curve = if area.width >= 100 { usize::from(area.width) / 3 } else { 0 };
    let inside = usize::from(area.width).saturating_sub(name + 12 + curve + 2);
    let order = state.sorted_by(View::Threads).unwrap_or("CPU");
    let heading = vec![
        piece(&text::left("thread", name), Tone::Dim),
        piece(&text::right("CPU", 9), Tone::Dim),
        piece(&text::left(&format!("  in span, for how long; by {order}"), inside + 3), Tone::Dim),
        piece(if curve > 0 { "over time" } else { "" }, Tone::Dim),
    ];
    write::line(area, frame, 0, Line::from(heading));
    let page = usize::from(area.height.saturating_sub(1));
    let last = threads.len().saturating_sub(page);
    for (index, thread) in threads.iter().skip(state.scroll.min(last)).take(page).enumerate() {
        let Ok(y) = u16::try_from(index + 1) else { break };
        let place = Rect { y: area.y + y, height: 1, ..area };
        draw_thread(place, frame, thread, (name, inside, curve));
    }
    Extent { page, last, ..Extent::default() }
}

fn draw_thread(place: Rect, frame: &mut Buffer, thread: &Thread, (name, inside, curve): (usize, usize, usize)) {
    let words = match &thread.inside {
        Some((span, since)) => format!("{span} for {}", format::nanoseconds(since.as_nanos() as f64)),
        None if thread.is_lane => "no span".to_owned(),
        None => String::new(),
    };
    let pieces: Vec<Span> = vec![
        piece(&text::left(&title(thread), name), if thread.is_lane { Tone::Strong } else { Tone::Plain }),
        piece(&text::right(&format!("{:.1} %", thread.cpu), 9), Tone::Plain),
        piece(&format!("  {}", text::left(&words, inside)), Tone::Plain),
    ];
    write::line(place, frame, 0, Line::from(pieces));
    let Ok(width) = u16::try_from(curve) else { return };
    if width > 0 && width < place.width {
        let graph = Rect { x: place.right() - width, width, ..place };
        let curve = resample(&thread.curve, curve);
        let top = curve.iter().flatten().copied().fold(100.0, f64::max);
        spark::draw(graph, frame, &curve, top, tone(Tone::Area));
    }
}

fn title(thread: &Thread) -> String {
    if thread.rank == 0 { thread.name.clone() } else { format!("{} r{}", thread.name, thread.rank) }
}

/// The process, the caching allocators, and what the instrumentation costs; lines that they took.
fn draw_process(area: Rect, frame: &mut Buffer, state: &State) -> u16 {
    let process = &state.model.process;
    let gibibytes = |bytes: f64| format!("{:.2} GiB", bytes / f64::from(1 << 30));
    let fields = [
        Field::new("process CPU", format::known(process.cpu, |cpu| format!("{cpu:.0} %")), Tone::Strong),
        Field::new("memory", format::known(process.rss, gibibytes), Tone::Strong),
    ];
    write::fields(area, frame, 0, &fields);
    let mut lines = 1;
    let list = |of: Vec<String>| of.join("   ");
    let allocators = process.allocators.iter().take(8).map(|allocator| {
        let rank = if allocator.rank == 0 { String::new() } else { format!(" r{}", allocator.rank) };
        let (active, reserved) = (allocator.active, allocator.reserved);
        let of = |bytes| format::known(bytes, gibibytes);
        format!("{}{rank} {} of {} reserved", allocator.device, of(active), of(reserved))
    });
    let cost = process.cost.iter().take(12).map(|(lane, low, high)| {
        let percent = |value: Option<f64>| format::known(value, |value| format!("{value:.2}"));
        format!("{lane} {} to {} %", percent(*low), percent(*high))
    });
    for (label, words) in [("allocators", list(allocators.collect())), ("profiler's cost", list(cost.collect()))] {
        if !words.is_empty() && area.height > 8 {
            write::fields(area, frame, usize::from(lines), &[Field::new(label, words, Tone::Plain)]);
            lines += 1;
        }
    }
    if area.height > 8 { lines + 1 } else { lines }
}
