//! Going from view to view, through a view's rows, and out of what is open.

use std::time::Duration;

use super::{Action, Control, Liveness, Next, Prompt, Sorting, State, View, columns};

impl State {
    /// Closes what is open, the innermost first.
    pub(super) fn back(&mut self) -> Next {
        if self.panel.take().is_some() {
            self.scroll = 0;
        } else if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.notice.take().is_some() && self.view == View::Overview {
            return Next::Draw;
        } else {
            return match self.view {
                View::Overview => Next::Quit,
                View::Help => self.show(self.before_help),
                _ => self.show(View::Overview),
            };
        }
        Next::Draw
    }

    /// Asks before anything is asked of the run; says why if nothing can be.
    pub(super) fn ask(&mut self, control: Control) {
        let run = &self.model.run;
        match run.liveness {
            Liveness::Alive => self.prompt = Some(Prompt::about(control)),
            Liveness::Remote | Liveness::Silent => {
                self.say(format!("read only: the trainer runs on {}", run.host), true);
            }
            Liveness::NoRun => self.say("there is no run to ask", true),
            Liveness::Ended | Liveness::Died => self.say("the run is over: there is nobody to ask", true),
        }
    }

    pub(super) fn click(&mut self, column: u16, line: u16) -> Next {
        let at = |(_, first, behind): &&(View, u16, u16)| line == 0 && (*first..*behind).contains(&column);
        match self.extent.tabs.iter().find(at) {
            Some((view, ..)) => self.show(*view),
            None => Next::Draw,
        }
    }

    pub(super) fn show(&mut self, view: View) -> Next {
        if self.panel.take().is_none() && view == self.view {
            return Next::Draw;
        }
        if view == View::Help && self.view != View::Help {
            self.before_help = self.view;
        }
        (self.view, self.scroll) = (view, 0);
        // The timeline's stretch is computed only while it is shown.
        if view == View::Timeline { Next::Recompute } else { Next::Draw }
    }

    pub(super) fn sort_by(&mut self, step: usize) {
        let count = columns(self.view).len();
        if count > 0 {
            let sorting = &mut self.sorting[self.view.index()];
            *sorting = Sorting { column: (sorting.column + step) % count, reversed: false };
        }
    }

    pub(super) fn step_interval(&mut self, step: impl Fn(u64) -> Option<u64>) {
        let now = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        if let Some(next) = step(now) {
            self.interval = Duration::from_millis(next);
        }
    }

    pub(super) fn scroll_by(&mut self, action: Action) {
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
