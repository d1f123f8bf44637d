//! The lines above and below every view: which run, how it is, how it does, which keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::format::{self, known};
use super::text;
use super::theme::{Tone, tone};
use super::write::{self, Field, piece};
use crate::state::{Liveness, Model, Run, State, View, columns};

/// Lines above the view.
pub const LINES: u16 = 4;

/// Draws the lines above the view; says where the tabs stand.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Vec<(View, u16, u16)> {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let tabs = draw_title(inner, frame, state);
    write::fields(inner, frame, 1, &health(&state.model));
    write::fields(inner, frame, 2, &progress(&state.model));
    tabs
}

fn draw_title(area: Rect, frame: &mut Buffer, state: &State) -> Vec<(View, u16, u16)> {
    let tabs = tabs(state.view, area.width);
    let width: usize = tabs.iter().map(|(_, label)| label.width()).sum();
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
    let run = &state.model.run;
    let no_run = run.liveness == Liveness::NoRun;
    let attempt = if no_run { String::new() } else { format!("  attempt {}", run.attempt) };
    let name = if no_run { run.host.as_str() } else { run.name.as_str() };
    let room = usize::from(area.width.saturating_sub(width)).saturating_sub(13);
    // The name is worth more than the number of the attempt.
    let attempt = if text::width(&text::clean(name)) + attempt.len() <= room { attempt } else { String::new() };
    let title = vec![
        piece(if width + 13 <= area.width { "dflash top" } else { "top" }, Tone::Accent).patch_style(Modifier::BOLD),
        Span::raw("  "),
        piece(&text::fit(name, room.saturating_sub(attempt.len())), Tone::Strong),
        piece(&attempt, Tone::Dim),
    ];
    write::line(area, frame, 0, Line::from(title));
    let mut column = area.right() - width;
    let mut places = Vec::new();
    for (view, label) in tabs {
        let behind = column.saturating_add(u16::try_from(label.width()).unwrap_or(0)).min(area.right());
        places.push((view, column, behind));
        write::line(Rect { x: column, width: behind - column, ..area }, frame, 0, Line::from(label));
        column = behind;
    }
    places
}

/// The names of the views; on a narrow screen only that of the one shown.
fn tabs(shown: View, width: u16) -> Vec<(View, Span<'static>)> {
    let tab = |(number, view): (usize, View)| {
        let (here, wide) = (view == shown, width >= 140);
        let label = if here || wide { format!(" {number} {} ", view.title()) } else { format!(" {number} ") };
        let style = if here { tone(Tone::Accent).add_modifier(Modifier::REVERSED) } else { tone(Tone::Dim) };
        (view, Span::styled(label, style))
    };
    (1..).zip(View::ALL).map(tab).collect()
}

/// Whether the trainer lives and what is missing of the record, most important first.
fn health(model: &Model) -> Vec<Field> {
    let run = &model.run;
    let (mark, words, as_tone) = liveness(run);
    let mut fields = vec![Field::new("", format!("{mark} {words}"), as_tone)];
    if run.liveness == Liveness::NoRun {
        return fields;
    }
    if run.trouble.is_some() {
        fields.push(Field::new("", "INCOMPLETE".to_owned(), Tone::Bad));
    }
    let lost = if model.losses.is_none() { Tone::Plain } else { Tone::Bad };
    fields.push(Field::new("", model.losses.words(), lost));
    // How long ago a run has ended is not its business: a picture of it stays the same.
    if run.liveness != Liveness::Ended {
        let late = run.is_live() && run.age.is_some_and(|age| age.as_secs() >= 5);
        let age = known(run.age, |age| format!("{} ago", format::age(age)));
        fields.push(Field::new("last block", age, if late { Tone::Warn } else { Tone::Plain }));
    }
    if model.losses.expired > 0 {
        // Deleted on purpose: nothing is wrong, but nobody must wonder where the beginning is.
        let from = model
            .losses
            .detail_from
            .map_or_else(|| "its rest".to_owned(), |from| format!("{} on", format::elapsed(from)));
        let older = format::bytes(model.losses.expired);
        fields.push(Field::new("detail from", format!("{from} (older: {older}, deleted by keep)"), Tone::Plain));
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
        Liveness::NoRun => ('○', "no run: the GPUs of this machine".to_owned(), Tone::Plain),
        Liveness::Ended => ('■', (*state).to_owned(), Tone::Plain),
    }
}

/// What the training has reached, most important first.
fn progress(model: &Model) -> Vec<Field> {
    if model.run.liveness == Liveness::NoRun {
        return Vec::new();
    }
    let decimals = |value: f64| format!("{value:.3}");
    let tau = model.newest(|row| row.acceptance_length).or(model.run.tau);
    let tokens = model.throughput.tokens_per_s.or_else(|| model.newest(|row| row.tokens_per_s));
    let supervised = model.newest(|row| row.supervised_tokens_per_s);
    let tokens = known(tokens, format::whole) + &trend(model).unwrap_or_default();
    vec![
        Field::new("step", known(model.newest(|row| Some(row.step)), |step| format::whole(step as f64)), Tone::Strong),
        Field::new("loss", known(model.newest(|row| row.loss), decimals), Tone::Strong),
        Field::new("tokens/s", tokens, Tone::Strong),
        Field::new("accuracy", known(model.newest(|row| row.accuracy), format::percent), Tone::Strong),
        Field::new("tau", known(tau, |tau| format!("{tau:.2}")), Tone::Strong),
        Field::new("supervised tokens/s", known(supervised, format::whole), Tone::Plain),
    ]
}

/// Logged steps whose means are compared for the trend of the throughput.
const TREND: usize = 20;

/// ` ↑ 4 %`: the mean of the last logged steps against that of the ones before; `None` while there are too few.
fn trend(model: &Model) -> Option<String> {
    let speeds: Vec<f64> = model.metrics.iter().rev().filter_map(|row| row.tokens_per_s).take(2 * TREND).collect();
    let (new, old) = speeds.split_at_checked(TREND).filter(|(_, old)| old.len() == TREND)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let change = mean(new) / mean(old) - 1.0;
    let arrow = match change {
        _ if !change.is_finite() => return None,
        0.01.. => '↑',
        -0.01..0.01 => '→',
        _ => '↓',
    };
    Some(if arrow == '→' { format!(" {arrow}") } else { format!(" {arrow} {}", format::percent(change.abs())) })
}

/// Draws the line below the view: the keys, and what they have set.
pub fn draw_keys(area: Rect, frame: &mut Buffer, state: &State) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let play = playing(state);
    let interval = format!("{} s", state.interval.as_secs_f64());
    let filter = format!("only {}", text::fit(&state.filter, 16));
    let mut keys: Vec<(&str, &str)> = vec![("q", "quit"), ("?", "help"), ("p", &play)];
    if state.inside {
        keys.splice(..1, [("q", "leave the view"), ("^C", "end the training")]);
    }
    // Rows that are left out must not go unnoticed.
    if !state.filter.is_empty() {
        keys.push(("/", &filter));
    }
    keys.push(("w", state.window.title()));
    if state.model.run.is_live() {
        keys.push(("+-", &interval));
    } else {
        keys.push(("[]", "scrub"));
    }
    let order = columns(state.view);
    if !order.is_empty() {
        keys.extend([("s", state.sorted_by(state.view).unwrap_or("sort")), ("r", "reverse")]);
    }
    if state.filter.is_empty() {
        keys.push(("/", "filter"));
    }
    keys.extend([("b", "baseline"), ("tab", "view"), ("jk", "scroll")]);
    if state.model.run.liveness == Liveness::Alive {
        keys.push(("LCKTWM", "ask the run"));
    }
    let mut pieces = Vec::new();
    let mut room = usize::from(inner.width);
    for (key, meaning) in keys {
        let loud = ["PAUSED", "PLAYS", "READS", "only "].iter().any(|word| meaning.starts_with(word));
        let Some(left) = room.checked_sub(key.len() + text::width(meaning) + 3) else { break };
        room = left;
        let gap = if pieces.is_empty() { "" } else { "  " };
        let as_tone = if loud { Tone::Warn } else { Tone::Dim };
        pieces.extend([Span::raw(gap), piece(key, Tone::Accent), Span::raw(" "), piece(meaning, as_tone)]);
    }
    write::line(inner, frame, 0, Line::from(pieces));
}

/// Whether the screen stands still, and at which moment of the recording.
fn playing(state: &State) -> String {
    let at = state.played().map(|share| format!(" at {}", format::percent(share))).unwrap_or_default();
    if state.reading {
        return format!("READS{at}");
    }
    let speed = if state.speed < 1.0 { format!("1/{}", 1.0 / state.speed) } else { state.speed.to_string() };
    match (state.paused, state.is_playing()) {
        (_, true) => format!("PLAYS{at}, x{speed}"),
        (true, _) => format!("PAUSED{at}"),
        _ if state.model.run.is_live() => "pause".to_owned(),
        _ => "play".to_owned(),
    }
}
