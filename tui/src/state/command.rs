//! What is asked of a run, and the questions before that.

use super::Control;

/// Seconds of CPU sampling.
pub const CPU_SECONDS: u32 = 30;
/// Samples a second of each thread.
pub const CPU_HZ: u32 = 99;
/// Iterations whose kernels are captured.
pub const KERNEL_ITERATIONS: u64 = 3;
/// Letters of a mark or a filter.
const LONGEST: usize = 200;

/// A request that was confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Record this much from now on: `off`, `stages` or `layers`.
    Level(&'static str),
    /// Sample CPU time for [`CPU_SECONDS`].
    Cpu,
    /// Capture the kernels of [`KERNEL_ITERATIONS`].
    Kernels,
    /// What every thread does now.
    Stacks,
    /// Write a checkpoint.
    Checkpoint,
    /// Put this note into the timeline.
    Mark(String),
}

impl Command {
    /// What is waited for, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Level(level) => format!("level {level}"),
            Self::Cpu => format!("CPU sampling for {CPU_SECONDS} s"),
            Self::Kernels => format!("kernel capture of {KERNEL_ITERATIONS} iterations"),
            Self::Stacks => "stacks".to_owned(),
            Self::Checkpoint => "checkpoint".to_owned(),
            Self::Mark(_) => "mark".to_owned(),
        }
    }
}

/// What the user is being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// What the rows must contain; the text so far.
    Filter(String),
    /// What the note says; the text so far.
    Mark(String),
    /// Which level.
    Level,
    /// Whether to do it.
    Confirm(Command),
}

/// What a key did to a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It goes on.
    Open,
    /// It was given up.
    Dropped,
    /// The rows must contain this.
    Filter(String),
    /// Ask the run for this.
    Do(Command),
}

impl Prompt {
    /// The first question about what was asked for.
    #[must_use]
    pub fn about(control: Control) -> Self {
        match control {
            Control::Level => Self::Level,
            Control::Mark => Self::Mark(String::new()),
            Control::Cpu => Self::Confirm(Command::Cpu),
            Control::Kernels => Self::Confirm(Command::Kernels),
            Control::Stacks => Self::Confirm(Command::Stacks),
            Control::Checkpoint => Self::Confirm(Command::Checkpoint),
        }
    }

    /// Whether letters are text rather than keys.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Filter(_) | Self::Mark(_))
    }

    /// The question, and what was typed so far.
    #[must_use]
    pub fn words(&self) -> (String, &str) {
        match self {
            Self::Filter(text) => ("only rows with: ".to_owned(), text),
            Self::Mark(text) => ("a note for the timeline: ".to_owned(), text),
            Self::Level => ("record from now on: o off, s stages, l layers".to_owned(), ""),
            Self::Confirm(command) => (format!("ask the run for {}? y yes, n no", command.words()), ""),
        }
    }

    /// Takes a letter.
    pub fn letter(&mut self, letter: char) -> Answered {
        match self {
            Self::Filter(text) | Self::Mark(text) => {
                if text.chars().count() < LONGEST && !letter.is_control() {
                    text.push(letter);
                }
                Answered::Open
            }
            Self::Level => match letter {
                'o' => Answered::Do(Command::Level("off")),
                's' => Answered::Do(Command::Level("stages")),
                'l' => Answered::Do(Command::Level("layers")),
                _ => Answered::Open,
            },
            Self::Confirm(command) => match letter {
                'y' | 'Y' => Answered::Do(command.clone()),
                'n' | 'N' => Answered::Dropped,
                _ => Answered::Open,
            },
        }
    }

    /// Takes back a letter.
    pub fn erase(&mut self) {
        if let Self::Filter(text) | Self::Mark(text) = self {
            text.pop();
        }
    }

    /// The text is complete. Enter is no answer to a question: it may have been typed for something else.
    #[must_use]
    pub fn accept(&self) -> Answered {
        match self {
            Self::Filter(text) => Answered::Filter(text.clone()),
            Self::Mark(text) if text.trim().is_empty() => Answered::Dropped,
            Self::Mark(text) => Answered::Do(Command::Mark(text.trim().to_owned())),
            Self::Level | Self::Confirm(_) => Answered::Open,
        }
    }
}

/// A line that stays until something else is to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// What.
    pub text: String,
    /// Something failed.
    pub bad: bool,
}

/// Text over the view, until Esc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}
