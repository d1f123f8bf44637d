//! What the training reaches: loss, accuracy, acceptance length.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::chart::{self, Curve};
use super::format::{self, known};
use super::theme::Tone;
use super::write::{self, Field, piece};
use crate::state::{Extent, Model, State};

/// Draws the curves of metrics.csv and its newest values.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let model = &state.model;
    if model.metrics.is_empty() {
        let words = "no steps yet: the training appends a row to metrics.csv with each one that it logs";
        for (index, words) in write::wrap(words, usize::from(area.width)).iter().enumerate() {
            write::line(area, frame, index, Line::from(piece(words, Tone::Dim)));
        }
        return Extent::default();
    }
    let [values, rest] = Layout::vertical([Constraint::Length(3), Constraint::Fill(1)]).areas(area);
    draw_values(values, frame, model);
    draw_curves(rest, frame, model);
    Extent::default()
}

/// As many curves as there is room for, the most telling first.
fn draw_curves(area: Rect, frame: &mut Buffer, model: &Model) {
    let rows = &model.metrics;
    let mut curves = vec![("Loss", Curve::loss(rows)), ("Accuracy", Curve::accuracy(rows))];
    curves.extend([("Acceptance length (tau)", Curve::tau(rows)), ("Learning rate", Curve::learning_rate(rows))]);
    curves.retain(|(title, curve)| !curve.is_empty() || *title == "Loss");
    let across = if area.width >= 110 { 2 } else { 1 };
    let down = curves.len().div_ceil(across).min(usize::from(area.height / 6).max(1));
    curves.truncate(across * down);
    let shares = vec![Constraint::Fill(1); down];
    for (place, side_by_side) in Layout::vertical(shares).split(area).iter().zip(curves.chunks(across)) {
        let shares = vec![Constraint::Fill(1); side_by_side.len()];
        let places = Layout::horizontal(shares).spacing(2).split(*place);
        for ((title, curve), place) in side_by_side.iter().zip(places.iter()) {
            if place.height > 1 {
                let detail = if *title == "Accuracy" { "by step; behind it each slot's" } else { "by step" };
                write::heading(*place, frame, 0, title, detail);
                chart::draw(Rect { y: place.y + 1, height: place.height - 1, ..*place }, frame, curve);
            }
        }
    }
}

fn draw_values(area: Rect, frame: &mut Buffer, model: &Model) {
    let rate = model.newest(|row| row.learning_rate);
    let norm = model.newest(|row| row.gradient_norm);
    let fields = [
        Field::new("learning rate", known(rate, |rate| format!("{rate:.2e}")), Tone::Plain),
        Field::new("gradient norm", known(norm, format::three_digits), Tone::Plain),
        Field::new("logged steps", known(model.logged, |rows| format::whole(rows as f64)), Tone::Plain),
    ];
    write::fields(area, frame, 0, &fields);
    let slots = model.newest(|row| (!row.slots.is_empty()).then(|| row.slots.clone()));
    let slots = slots.map(|slots| slots.into_iter().map(format::percent).collect::<Vec<_>>().join("  "));
    write::fields(area, frame, 1, &[Field::new("accuracy by slot", known(slots, |slots| slots), Tone::Plain)]);
    let taus: Vec<String> = taus(model);
    let taus = if taus.is_empty() { format::UNKNOWN.to_owned() } else { taus.join("  ") };
    write::fields(area, frame, 2, &[Field::new("tau", taus, Tone::Plain)]);
}

/// `1.91 at 400` of each evaluation, newest first, and the run's own at its end.
fn taus(model: &Model) -> Vec<String> {
    let measured = model.metrics.iter().rev().filter_map(|row| Some((row.step, row.acceptance_length?)));
    let end = model.run.tau.map(|tau| format!("{tau:.2} at the end"));
    end.into_iter().chain(measured.map(|(step, tau)| format!("{tau:.2} at {step}"))).take(20).collect()
}
