//! What is shown and how the user has set it. Knows no keys and no styling.

mod action;
mod model;
mod queues;
mod run;
mod series;

use std::time::Duration;

pub use action::{Action, Next, View, WindowLength};
pub use model::{Input, Lane, Model};
pub use queues::Queue;
pub use run::{Liveness, Losses, Run};
pub use series::{BINS, resample};

/// How much of a view fits, as the drawing found it: what scrolling needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Lines that are visible at a time.
    pub page: usize,
    /// Furthest line that may stand at the top.
    pub last: usize,
    /// Lines at which a lane begins.
    pub lanes: Vec<usize>,
}

/// Steps of the interval, in milliseconds.
const INTERVALS: [u64; 8] = [100, 200, 500, 1000, 2000, 5000, 10_000, 60_000];

/// Everything a frame is drawn from.
#[derive(Clone, Debug)]
pub struct State {
    /// The view that is shown.
    pub view: View,
    /// Whether the screen is held still.
    pub paused: bool,
    /// How often the run is looked at.
    pub interval: Duration,
    /// How far back the numbers look.
    pub window: WindowLength,
    /// First visible line of the view.
    pub scroll: usize,
    /// Whether the line of keys is shown; a printed frame has no use for it.
    pub keys: bool,
    /// The numbers.
    pub model: Model,
    before_help: View,
    extent: Extent,
}

impl State {
    /// The overview of `model`, computed over `window`.
    #[must_use]
    pub fn new(model: Model, interval: Duration, window: WindowLength) -> Self {
        Self {
            view: View::Overview,
            paused: false,
            interval: interval.clamp(Duration::from_millis(50), Duration::from_secs(3600)),
            window,
            scroll: 0,
            keys: true,
            model,
            before_help: View::Overview,
            extent: Extent::default(),
        }
    }

    /// Does what the user asked for.
    pub fn apply(&mut self, action: Action) -> Next {
        match action {
            Action::Quit => return Next::Quit,
            Action::Back if self.view == View::Overview => return Next::Quit,
            Action::Back if self.view == View::Help => self.show(self.before_help),
            Action::Back => self.show(View::Overview),
            Action::Show(view) => self.show(view),
            Action::NextView => self.show(self.view.neighbour(1)),
            Action::PreviousView => self.show(self.view.neighbour(View::ALL.len() - 1)),
            Action::Pause => {
                self.paused = !self.paused;
                return Next::Recompute;
            }
            Action::Faster => self.step_interval(|now| INTERVALS.into_iter().rev().find(|step| *step < now)),
            Action::Slower => self.step_interval(|now| INTERVALS.into_iter().find(|step| *step > now)),
            Action::NextWindow => {
                self.window = self.window.next();
                return Next::Recompute;
            }
            Action::Redraw => return Next::Clear,
            moving => self.scroll_by(moving),
        }
        Next::Draw
    }

    /// Takes over what the drawing found out, so that no key runs past the end.
    pub fn drawn(&mut self, extent: Extent) {
        self.scroll = self.scroll.min(extent.last);
        self.extent = extent;
    }

    fn show(&mut self, view: View) {
        if view == self.view {
            return;
        }
        if view == View::Help {
            self.before_help = self.view;
        }
        self.view = view;
        self.scroll = 0;
    }

    fn step_interval(&mut self, step: impl Fn(u64) -> Option<u64>) {
        let now = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        if let Some(next) = step(now) {
            self.interval = Duration::from_millis(next);
        }
    }

    fn scroll_by(&mut self, action: Action) {
        let page = self.extent.page.max(2) - 1;
        let at = self.scroll;
        self.scroll = match action {
            Action::Up => at.saturating_sub(1),
            Action::Down => at.saturating_add(1),
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => at.saturating_add(page),
            Action::Home => 0,
            Action::End => self.extent.last,
            Action::Left => self.extent.lanes.iter().rev().find(|lane| **lane < at).copied().unwrap_or(0),
            Action::Right => self.extent.lanes.iter().find(|lane| **lane > at).copied().unwrap_or(at),
            _ => at,
        }
        .min(self.extent.last);
    }
}

#[cfg(test)]
mod tests;
