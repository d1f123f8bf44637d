//! What can be shown, and what the user can ask for.

/// One screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Who waits for whom, on one screen.
    #[default]
    Overview,
    /// The stage table of every lane.
    Stages,
    /// The last iterations, side by side on one axis of time.
    Timeline,
    /// The queues between the lanes.
    Queues,
    /// What the GPUs' sensors say.
    Gpus,
    /// CPU time by thread.
    Threads,
    /// Loss, accuracy, acceptance length, learning rate.
    Training,
    /// Warnings, checkpoints, changes of the level, marks.
    Events,
    /// Keys and words.
    Help,
}

impl View {
    /// All views in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Overview,
        Self::Stages,
        Self::Timeline,
        Self::Queues,
        Self::Gpus,
        Self::Threads,
        Self::Training,
        Self::Events,
        Self::Help,
    ];

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Stages => "Stages",
            Self::Timeline => "Timeline",
            Self::Queues => "Queues",
            Self::Gpus => "GPUs",
            Self::Threads => "Threads",
            Self::Training => "Training",
            Self::Events => "Events",
            Self::Help => "Help",
        }
    }

    /// The view with this number, from 1.
    #[must_use]
    pub fn numbered(number: usize) -> Option<Self> {
        Self::ALL.get(number.checked_sub(1)?).copied()
    }

    pub(super) fn index(self) -> usize {
        Self::ALL.iter().position(|view| *view == self).unwrap_or(0)
    }

    pub(super) fn neighbour(self, step: usize) -> Self {
        Self::ALL[(self.index() + step) % Self::ALL.len()]
    }
}

/// How far back the numbers look, counted from the newest record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowLength {
    /// The last 10 seconds.
    Seconds10,
    /// The last minute.
    #[default]
    Minute,
    /// The last 10 minutes.
    Minutes10,
    /// All that is there.
    Whole,
    /// So many nanoseconds.
    Exactly(i64),
}

impl WindowLength {
    /// Nanoseconds; `None` is all that is there.
    #[must_use]
    pub fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Seconds10 => Some(10_000_000_000),
            Self::Minute => Some(60_000_000_000),
            Self::Minutes10 => Some(600_000_000_000),
            Self::Whole => None,
            Self::Exactly(ns) => Some(ns),
        }
    }

    /// `last minute`, ….
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Seconds10 => "last 10 s",
            Self::Minute => "last minute",
            Self::Minutes10 => "last 10 min",
            Self::Whole => "all",
            Self::Exactly(_) => "a stretch",
        }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::Seconds10 => Self::Minute,
            Self::Minute => Self::Minutes10,
            Self::Minutes10 => Self::Whole,
            Self::Whole | Self::Exactly(_) => Self::Seconds10,
        }
    }
}

/// What the user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the view.
    Quit,
    /// End the view, and what runs behind it.
    Interrupt,
    /// Leave what is open: a question, a text, a filter, the view; ends the program only from the overview.
    Back,
    /// Show a view.
    Show(View),
    /// Show the view after this one.
    NextView,
    /// Show the view before this one.
    PreviousView,
    /// Hold the screen still, or go on; plays a finished run.
    Pause,
    /// Look at the run more often.
    Faster,
    /// Look at the run less often.
    Slower,
    /// Average over the next longer window.
    NextWindow,
    /// So many steps through the recording, back if negative.
    Scrub(i32),
    /// Play the recording twice as fast.
    SpeedUp,
    /// Play the recording half as fast.
    SpeedDown,
    /// Show a shorter stretch of the timeline.
    ZoomIn,
    /// Show a longer stretch of the timeline.
    ZoomOut,
    /// Sort by the next column.
    SortNext,
    /// Sort by the column before.
    SortPrevious,
    /// Turn the order round.
    Reverse,
    /// Begin to type what the rows shown must contain.
    Filter,
    /// Compare against the baseline, or no longer; without one, what is shown now becomes it.
    Baseline,
    /// Take the mouse, or give it back to the terminal so that text can be selected.
    Mouse,
    /// Ask the run for something, once it is confirmed.
    Ask(Control),
    /// A letter of the text that is being typed, or the answer to a question.
    Type(char),
    /// Take back the last letter.
    Erase,
    /// The text is complete; yes.
    Accept,
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// To the lane before; an earlier part of the timeline.
    Left,
    /// To the next lane; a later part of the timeline.
    Right,
    /// One screenful up.
    PageUp,
    /// One screenful down.
    PageDown,
    /// To the top.
    Home,
    /// To the bottom.
    End,
    /// Draw everything anew.
    Redraw,
    /// Stop the program until the shell continues it.
    Suspend,
    /// The tab at this place was clicked, counted in columns and lines.
    Click(u16, u16),
}

/// What can be asked of a run from the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Record more or less.
    Level,
    /// Sample CPU time for 30 s.
    Cpu,
    /// Capture the kernels of 3 iterations.
    Kernels,
    /// What every thread does now.
    Stacks,
    /// Write a checkpoint.
    Checkpoint,
    /// Put a note into the timeline.
    Mark,
}

/// What is to be done after an action, the most far-reaching last: of several, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// Draw.
    Draw,
    /// Compute the numbers anew, then draw.
    Recompute,
    /// Clear the terminal, then draw.
    Clear,
    /// Give the terminal back and stop until continued.
    Suspend,
    /// End.
    Quit,
    /// End, as Ctrl-C does.
    Interrupt,
}
