//! Holding still, playing a recording, and moving through it.

use std::time::Duration;

use dflash_reports::stages::Window;

use super::{Action, Next, State, View, WindowLength, Zoom};

/// Slowest and fastest playing.
const SPEEDS: (f64, f64) = (1.0 / 64.0, 1024.0);
/// How far the timeline can be zoomed, powers of two.
const POWERS: (i32, i32) = (-16, 24);
/// A step through a recording is this part of the window.
const STEPS: i64 = 20;

impl State {
    /// Whether the recording is being played.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        !self.model.run.is_live() && !self.paused && self.at_ns.is_some()
    }

    /// The part of the recording that has been played, 0 to 1; `None` at its end.
    #[must_use]
    pub fn played(&self) -> Option<f64> {
        let (first, last) = self.model.extent_ns?;
        let at = self.at_ns?;
        Some((at.saturating_sub(first) as f64 / (last.saturating_sub(first)).max(1) as f64).clamp(0.0, 1.0))
    }

    /// Lets `elapsed` pass in what is played; whether the numbers change.
    pub fn tick(&mut self, elapsed: Duration) -> bool {
        let (Some(at), Some((_, last))) = (self.at_ns.filter(|_| self.is_playing()), self.model.extent_ns) else {
            return false;
        };
        let at = at.saturating_add((elapsed.as_nanos() as f64 * self.speed) as i64);
        // At its end it is as it was before it was played.
        self.at_ns = (at < last).then_some(at);
        true
    }

    /// Looks at a stretch of time, and holds it.
    pub fn look_at(&mut self, stretch: &Window) {
        let Some((first, newest)) = self.model.extent_ns else { return };
        let from = stretch.from_ns.unwrap_or(first);
        // The last moment in it: its end is the first one behind it.
        let at = stretch.to_ns.map_or(newest, |to| to.saturating_sub(1)).clamp(first, newest);
        self.window = WindowLength::Exactly(at.saturating_sub(from).max(0));
        self.at_ns = (at < newest).then_some(at);
        self.paused = self.at_ns.is_some() || !self.model.run.is_live();
    }

    pub(super) fn play(&mut self, action: Action) -> Next {
        match action {
            Action::Pause => self.pause(),
            Action::Scrub(steps) => self.scrub(steps),
            Action::SpeedUp => self.speed = (self.speed * 2.0).min(SPEEDS.1),
            _ => self.speed = (self.speed / 2.0).max(SPEEDS.0),
        }
        Next::Recompute
    }

    fn pause(&mut self) {
        if self.model.run.is_live() {
            self.paused = !self.paused;
            if !self.paused {
                self.at_ns = None;
            }
        } else if self.at_ns.is_none() {
            // A finished run is played from its start.
            (self.paused, self.at_ns) = (false, self.model.extent_ns.map(|(first, _)| first));
        } else {
            self.paused = !self.paused;
        }
    }

    fn scrub(&mut self, steps: i32) {
        let Some((first, last)) = self.model.extent_ns else { return };
        let all = last.saturating_sub(first);
        let step = self.window.nanoseconds().unwrap_or(all).min(all) / STEPS;
        let at = self.at_ns.unwrap_or(last).saturating_add(step.max(1).saturating_mul(i64::from(steps)));
        // Whoever moves about wants to look.
        self.paused = true;
        self.at_ns = (at < last).then_some(at.max(first));
        if self.at_ns.is_none() && !self.model.run.is_live() {
            self.paused = false;
        }
    }

    pub(super) fn rescale(&mut self, action: Action) -> Next {
        if self.view != View::Timeline {
            return Next::Draw;
        }
        let Zoom { power, back } = self.zoom;
        // What stands at the right edge stays there.
        self.zoom = match action {
            Action::ZoomIn if power < POWERS.1 => Zoom { power: power + 1, back: back.saturating_mul(2) },
            Action::ZoomOut if power > POWERS.0 => Zoom { power: power - 1, back: back / 2 },
            _ => self.zoom,
        };
        Next::Recompute
    }

    pub(super) fn pan(&mut self, action: Action) -> Next {
        let (from, to) = (self.model.gantt.from_ns, self.model.gantt.to_ns);
        let eighth = (to.saturating_sub(from) / 8).max(1);
        // Of a part, no more can be shown than it holds.
        let known = self.model.held_ns.zip(self.model.at_ns).map_or(0, |(first, at)| at.saturating_sub(first));
        let most = known / eighth;
        self.zoom.back = match action {
            Action::Left => self.zoom.back.saturating_add(1).min(most),
            Action::Right => self.zoom.back.saturating_sub(1).max(0),
            Action::Home => most.saturating_sub(8).max(0),
            _ => 0,
        };
        Next::Recompute
    }
}
