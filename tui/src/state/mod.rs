//! What is shown and how the user has set it. Knows no keys and no styling.

mod action;
mod baseline;
mod command;
mod counters;
mod curves;
mod event;
mod gantt;
mod gpu;
mod model;
mod navigate;
mod order;
mod play;
mod process;
mod queues;
mod run;
mod series;
mod thread;

use std::time::Duration;

pub use action::{Action, Control, Next, View, WindowLength};
pub use baseline::Baseline;
pub use command::{Answered, CPU_HZ, CPU_SECONDS, Command, KERNEL_ITERATIONS, Notice, Panel, Prompt};
pub use counters::bridged;
pub use event::{Event, EventKind};
pub use gantt::{Gantt, GanttLane, GanttStream, HandOff, Journey, Stretch, Zoom};
pub use gpu::{Gpu, Sensor};
pub use model::{Input, Lane, Look, Model, extent};
pub use order::{MANY, Row, Sorting, columns, milliseconds, worse};
pub use process::{Allocator, Process};
pub use queues::Queue;
pub use run::{Liveness, Losses, Run};
pub use series::{BINS, resample};
pub use thread::Thread;

/// How much of a view fits, as the drawing found it: what scrolling needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Lines that are visible at a time.
    pub page: usize,
    /// Furthest line that may stand at the top.
    pub last: usize,
    /// Lines at which a lane begins.
    pub lanes: Vec<usize>,
    /// Where the tabs stand: the view, its first column and the one behind its last.
    pub tabs: Vec<(View, u16, u16)>,
}

/// What keys mean at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// They are for this view.
    View(View),
    /// They are letters of a text.
    Text,
    /// They answer a question.
    Question,
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
    /// The stretch that the timeline shows.
    pub zoom: Zoom,
    /// The moment that is looked at, monotonic nanoseconds; `None`: the newest.
    pub at_ns: Option<i64>,
    /// Recorded seconds that are played in one second.
    pub speed: f64,
    /// What is looked at is being read: the numbers are those from before.
    pub reading: bool,
    /// What rows must contain.
    pub filter: String,
    /// What is being asked of the user.
    pub prompt: Option<Prompt>,
    /// What was last said.
    pub notice: Option<Notice>,
    /// Text over the view.
    pub panel: Option<Panel>,
    /// Whether the mouse is taken.
    pub mouse: bool,
    /// Whether the program that shows the run is the one that runs it.
    pub inside: bool,
    /// What numbers may be compared to.
    pub baseline: Option<Baseline>,
    /// Whether they are.
    pub comparing: bool,
    sorting: [Sorting; View::ALL.len()],
    wanted: Option<Command>,
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
            zoom: Zoom::default(),
            at_ns: None,
            speed: 1.0,
            reading: false,
            filter: String::new(),
            prompt: None,
            notice: None,
            panel: None,
            mouse: false,
            inside: false,
            baseline: None,
            comparing: false,
            sorting: [Sorting::default(); View::ALL.len()],
            wanted: None,
            before_help: View::Overview,
            extent: Extent::default(),
        }
    }

    /// What part of the recording the numbers are wanted of.
    #[must_use]
    pub fn look(&self) -> Look {
        let zoom = (self.view == View::Timeline).then_some(self.zoom);
        Look { window: self.window, at_ns: self.at_ns, zoom }
    }

    /// What keys mean at the moment.
    #[must_use]
    pub fn focus(&self) -> Focus {
        match &self.prompt {
            None => Focus::View(self.view),
            Some(prompt) if prompt.is_text() => Focus::Text,
            Some(_) => Focus::Question,
        }
    }

    /// The request that was confirmed since the last call.
    pub fn take_wanted(&mut self) -> Option<Command> {
        self.wanted.take()
    }

    /// Does what the user asked for.
    pub fn apply(&mut self, action: Action) -> Next {
        if let Some(next) = self.answer(action) {
            return next;
        }
        match action {
            Action::Quit => return Next::Quit,
            Action::Interrupt => return Next::Interrupt,
            Action::Back => return self.back(),
            Action::Show(view) => return self.show(view),
            Action::NextView => return self.show(self.view.neighbour(1)),
            Action::PreviousView => return self.show(self.view.neighbour(View::ALL.len() - 1)),
            Action::Faster => self.step_interval(|now| INTERVALS.into_iter().rev().find(|step| *step < now)),
            Action::Slower => self.step_interval(|now| INTERVALS.into_iter().find(|step| *step > now)),
            Action::NextWindow => {
                self.window = self.window.next();
                return Next::Recompute;
            }
            Action::Pause | Action::Scrub(_) | Action::SpeedUp | Action::SpeedDown => return self.play(action),
            Action::ZoomIn | Action::ZoomOut => return self.rescale(action),
            Action::Left | Action::Right | Action::Home | Action::End if self.view == View::Timeline => {
                return self.pan(action);
            }
            Action::SortNext => self.sort_by(1),
            Action::SortPrevious => self.sort_by(columns(self.view).len().saturating_sub(1)),
            Action::Reverse => self.sorting[self.view.index()].reversed ^= true,
            Action::Filter => self.prompt = Some(Prompt::Filter(self.filter.clone())),
            Action::Baseline => self.compare(),
            Action::Mouse => self.mouse = !self.mouse,
            Action::Ask(control) => self.ask(control),
            Action::Redraw => return Next::Clear,
            Action::Suspend => return Next::Suspend,
            Action::Click(column, line) => return self.click(column, line),
            Action::Type(_) | Action::Erase | Action::Accept => {}
            moving => self.scroll_by(moving),
        }
        Next::Draw
    }

    /// Takes over what the drawing found out, so that no key runs past the end.
    pub fn drawn(&mut self, extent: Extent) {
        self.scroll = self.scroll.min(extent.last);
        self.extent = extent;
    }

    /// Says something at the foot.
    pub fn say(&mut self, text: impl Into<String>, bad: bool) {
        self.notice = Some(Notice { text: text.into(), bad });
    }

    /// Shows text over the view.
    pub fn open(&mut self, title: impl Into<String>, lines: Vec<String>) {
        (self.panel, self.scroll) = (Some(Panel { title: title.into(), lines }), 0);
    }

    /// What an action does to an open prompt; `None` if it is not for one.
    fn answer(&mut self, action: Action) -> Option<Next> {
        let prompt = self.prompt.as_mut()?;
        let answered = match action {
            Action::Type(letter) => prompt.letter(letter),
            Action::Accept => prompt.accept(),
            Action::Back => Answered::Dropped,
            Action::Erase => {
                prompt.erase();
                Answered::Open
            }
            _ => return None,
        };
        match answered {
            Answered::Open => return Some(Next::Draw),
            Answered::Dropped => {}
            Answered::Filter(text) => (self.filter, self.scroll) = (text, 0),
            Answered::Do(command) => {
                self.say(format!("asking the run for {} ...", command.words()), false);
                self.wanted = Some(command);
            }
        }
        self.prompt = None;
        Some(Next::Draw)
    }
}

#[cfg(test)]
mod tests;
