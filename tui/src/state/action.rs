//! What can be shown, and what the user can ask for.

/// One screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Who waits for whom, on one screen.
    #[default]
    Overview,
    /// The stage table of every lane.
    Stages,
    /// Loss and accuracy.
    Training,
    /// Keys and words.
    Help,
}

impl View {
    /// All views in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Overview, Self::Stages, Self::Training, Self::Help];

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Stages => "Stages",
            Self::Training => "Training",
            Self::Help => "Help",
        }
    }

    pub(super) fn neighbour(self, step: usize) -> Self {
        let index = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(index + step) % Self::ALL.len()]
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
        }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::Seconds10 => Self::Minute,
            Self::Minute => Self::Minutes10,
            Self::Minutes10 => Self::Whole,
            Self::Whole => Self::Seconds10,
        }
    }
}

/// What the user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Leave the view; ends the program only from the overview.
    Back,
    /// Show a view.
    Show(View),
    /// Show the view after this one.
    NextView,
    /// Show the view before this one.
    PreviousView,
    /// Hold the screen still, or go on.
    Pause,
    /// Look at the run more often.
    Faster,
    /// Look at the run less often.
    Slower,
    /// Average over the next longer window.
    NextWindow,
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// To the lane before.
    Left,
    /// To the next lane.
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
    /// End.
    Quit,
}
