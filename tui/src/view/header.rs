//! The lines above and below every view: which run, how it is, how it does, which keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::format::{self, known};
use super::text;
use super::theme::{Tone, tone};
use super::write::{self, Field, piece};
use crate::state::{Liveness, Model, Run, State, View};

/// Lines above the view.
pub const LINES: u16 = 4;

/// Draws the lines above the view.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    draw_title(inner, frame, state);
    write::fields(inner, frame, 1, &health(&state.model));
    write::fields(inner, frame, 2, &progress(&state.model));
}

fn draw_title(area: Rect, frame: &mut Buffer, state: &State) {
    let tabs = tabs(state.view, area.width);
    let tabs_width = u16::try_from(tabs.width()).unwrap_or(u16::MAX).min(area.width);
    let run = &state.model.run;
    let attempt = format!("  attempt {}", run.attempt);
    let room = usize::from(area.width.saturating_sub(tabs_width)).saturating_sub(13 + attempt.len());
    let title = vec![
        piece("dflash top", Tone::Accent).patch_style(Modifier::BOLD),
        Span::raw("  "),
        piece(&text::fit(&run.name, room), Tone::Strong),
        piece(&attempt, Tone::Dim),
    ];
    write::line(area, frame, 0, Line::from(title));
    let right = Rect { x: area.right() - tabs_width, width: tabs_width, ..area };
    write::line(right, frame, 0, tabs);
}

/// The names of the views; on a narrow screen only that of the one shown.
fn tabs(shown: View, width: u16) -> Line<'static> {
    let mut pieces = Vec::new();
    for (number, view) in (1..).zip(View::ALL) {
        let (here, wide) = (view == shown, width >= 100);
        let label = if here || wide { format!(" {number} {} ", view.title()) } else { format!(" {number} ") };
        let style = if here { tone(Tone::Accent).add_modifier(Modifier::REVERSED) } else { tone(Tone::Dim) };
        pieces.push(Span::styled(label, style));
    }
    Line::from(pieces)
}

/// Whether the trainer lives and what is missing of the record, most important first.
fn health(model: &Model) -> Vec<Field> {
    let run = &model.run;
    let (mark, words, as_tone) = liveness(run);
    let mut fields = vec![Field::new("", format!("{mark} {words}"), as_tone)];
    let lost = if model.losses.is_none() { Tone::Plain } else { Tone::Bad };
    fields.push(Field::new("", model.losses.words(), lost));
    // How long ago a run has ended is not its business: a picture of it stays the same.
    if run.liveness != Liveness::Ended {
        let late = run.is_live() && run.age.is_some_and(|age| age.as_secs() >= 5);
        let age = known(run.age, |age| format!("{} ago", format::age(age)));
        fields.push(Field::new("last block", age, if late { Tone::Warn } else { Tone::Plain }));
    }
    fields.push(Field::new("elapsed", known(run.elapsed, format::elapsed), Tone::Plain));
    if let Some(outcome) = &run.outcome {
        fields.push(Field::new("outcome", outcome, Tone::Plain));
    }
    fields
}

fn liveness(run: &Run) -> (char, String, Tone) {
    let Run { pid, host, state, .. } = run;
    match run.liveness {
        Liveness::Alive => ('●', format!("running, pid {pid} alive"), Tone::Good),
        Liveness::Remote => ('●', format!("running on {host}"), Tone::Good),
        Liveness::Silent => ('○', format!("silent on {host}"), Tone::Warn),
        Liveness::Died => ('✕', format!("died: pid {pid} is gone"), Tone::Bad),
        Liveness::Ended if *state == "failed" => ('✕', (*state).to_owned(), Tone::Bad),
        Liveness::Ended => ('■', (*state).to_owned(), Tone::Plain),
    }
}

/// What the training has reached, most important first.
fn progress(model: &Model) -> Vec<Field> {
    let decimals = |value: f64| format!("{value:.3}");
    let tau = model.newest(|row| row.acceptance_length).or(model.run.tau);
    let tokens = model.throughput.tokens_per_s.or_else(|| model.newest(|row| row.tokens_per_s));
    let supervised = model.newest(|row| row.supervised_tokens_per_s);
    vec![
        Field::new("step", known(model.newest(|row| Some(row.step)), |step| format::whole(step as f64)), Tone::Strong),
        Field::new("loss", known(model.newest(|row| row.loss), decimals), Tone::Strong),
        Field::new("tokens/s", known(tokens, format::whole), Tone::Strong),
        Field::new("accuracy", known(model.newest(|row| row.accuracy), format::percent), Tone::Strong),
        Field::new("tau", known(tau, |tau| format!("{tau:.2}")), Tone::Strong),
        Field::new("supervised tokens/s", known(supervised, format::whole), Tone::Plain),
    ]
}

/// Draws the line below the view: the keys, and what they have set.
pub fn draw_keys(area: Rect, frame: &mut Buffer, state: &State) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let pause = if state.paused { ("p", "PAUSED") } else { ("p", "pause") };
    let interval = format!("{} s", state.interval.as_secs_f64());
    let keys = [
        ("q", "quit"),
        ("?", "help"),
        pause,
        ("w", state.window.title()),
        ("+-", &interval),
        ("tab", "view"),
        ("jk", "scroll"),
    ];
    let mut pieces = Vec::new();
    for (key, meaning) in keys {
        let as_tone = if meaning == "PAUSED" { Tone::Warn } else { Tone::Dim };
        let gap = if pieces.is_empty() { "" } else { "  " };
        pieces.extend([Span::raw(gap), piece(key, Tone::Accent), Span::raw(" "), piece(meaning, as_tone)]);
    }
    write::line(inner, frame, 0, Line::from(pieces));
}
