#![doc = include_str!("../README.md")]

mod app;
mod error;
pub mod input;
mod inside;
mod keys;
mod print;
mod remote;
mod source;
pub mod state;
mod stderr;
mod svg;
mod terminal;
pub mod view;

use std::time::Duration;

pub use error::{Error, Result};
pub use inside::{Inside, Kept};
pub use print::frame_text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use source::{AloneSource, RunSource, SeveralSource, Source};
use state::{Action, Baseline, Look, Model, State, View, WindowLength};
pub use svg::frame_svg;
use view::adapt::{Charset, Colors};

use dflash_reports::timeline::RunDir;
use dflash_reports::window::TimeRange;

/// How to show a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The view to begin with, or to print; the overview, and printed as text the stages below it.
    pub view: Option<View>,
    /// How often a live run is looked at; 1 s.
    pub interval: Duration,
    /// How far back the numbers look; by default a minute of a live run, and all of a finished one.
    pub window: Option<WindowLength>,
    /// Only this stretch of time, instead of a window before the newest record.
    pub stretch: Option<TimeRange>,
    /// What the terminal can show; full colour and Unicode.
    pub charset: Charset,
    /// Take the mouse from the beginning.
    pub mouse: bool,
    /// A run whose stages are compared to.
    pub baseline: Option<RunDir>,
    /// Shown by the very program that runs it: leaving the view does not end the run.
    pub inside: Option<Inside>,
    /// Columns and lines of a printed frame; 120 columns, and as many lines as it takes.
    pub size: (u16, Option<u16>),
}

impl Default for Options {
    fn default() -> Self {
        let (interval, charset) = (Duration::from_secs(1), Charset::default());
        Self {
            view: None,
            interval,
            window: None,
            stretch: None,
            charset,
            mouse: false,
            baseline: None,
            inside: None,
            size: (120, None),
        }
    }
}

/// How the view came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The user left.
    Quit,
    /// The user pressed Ctrl-C.
    Interrupt,
    /// The run that was shown from inside is over.
    Over,
    /// This signal asked for it; the exit code is 128 more.
    Signal(i32),
}

/// What to show.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Subject {
    /// A run, live or finished.
    Run(RunDir),
    /// Several on one clock: the ranks of one training, or runs side by side.
    Runs(Vec<RunDir>),
    /// This machine's GPUs, because there is no run; says why there is none.
    Gpus(String),
}

impl From<RunDir> for Subject {
    fn from(run: RunDir) -> Self {
        Self::Run(run)
    }
}

/// Shows a run in the terminal until the user leaves. The terminal is as before afterwards, whatever happens.
///
/// # Errors
/// When the run cannot be read or the terminal cannot be used.
pub fn run(subject: impl Into<Subject>, options: &Options) -> Result<End> {
    let (source, state) = look(subject.into(), options)?;
    app::follow(source, state, options.charset, options.inside.as_ref())
}

/// The run as text, once.
///
/// # Errors
/// When the run cannot be read.
pub fn once(subject: impl Into<Subject>, options: &Options) -> Result<String> {
    let (mut source, mut state) = look(subject.into(), options)?;
    source.settle(&state.look());
    state.keys = false;
    let charset = Charset { colors: Colors::None, ..options.charset };
    let mut print = |view| {
        state.apply(Action::Show(view));
        state.model = source.model(&state.look());
        frame_text(&frame_of(&mut state, options.size, charset))
    };
    if let Some(view) = options.view {
        return Ok(print(view));
    }
    if matches!(source, Source::Alone(_)) {
        return Ok(print(View::Gpus));
    }
    let (overview, stages) = (print(View::Overview), print(View::Stages));
    // One head is enough.
    let below: Vec<&str> = stages.lines().skip(usize::from(view::header::LINES)).collect();
    Ok(overview + "\n" + &below.join("\n") + "\n")
}

/// The run as a frame, once: for a picture ([`frame_svg`]).
///
/// # Errors
/// When the run cannot be read.
pub fn frame(subject: impl Into<Subject>, options: &Options) -> Result<Buffer> {
    let (mut source, mut state) = look(subject.into(), options)?;
    source.settle(&state.look());
    state.model = source.model(&state.look());
    Ok(frame_of(&mut state, options.size, options.charset))
}

/// Columns of the terminal that stdout is; `None` if it is none.
#[must_use]
pub fn terminal_width() -> Option<u16> {
    use std::io::IsTerminal;
    let columns = std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok())?;
    columns.map(|(columns, _)| columns)
}

fn look(subject: Subject, options: &Options) -> Result<(Source, State)> {
    let (mut source, view) = match subject {
        Subject::Run(run) => (Source::Run(Box::new(RunSource::open(run)?)), View::Overview),
        Subject::Runs(runs) => (Source::Several(Box::new(SeveralSource::open(runs)?)), View::Overview),
        Subject::Gpus(why) => {
            (Source::Alone(Box::new(AloneSource::new(Box::new(source::Library::load()), why))), View::Gpus)
        }
    };
    let usual = if source.is_live() { WindowLength::Minute } else { WindowLength::Whole };
    let window = options.window.unwrap_or(usual);
    let mut state = State::new(Model::default(), options.interval, window);
    state.apply(Action::Show(options.view.unwrap_or(view)));
    if let Some(stretch) = options.stretch {
        state.model = source.model(&state.look());
        state.look_at(&source.place(stretch)?);
    }
    state.reading = !source.prepare(&state.look());
    state.model = source.model(&state.look());
    (state.mouse, state.inside) = (options.mouse, options.inside.is_some());
    if let Some(run) = &options.baseline {
        let whole = Look { window: WindowLength::Whole, ..Look::default() };
        let model = RunSource::open(run.clone())?.model(&whole);
        (state.baseline, state.comparing) = (Some(Baseline::of(&model, &model.run.name)), true);
    }
    Ok((source, state))
}

fn frame_of(state: &mut State, (columns, lines): (u16, Option<u16>), charset: Charset) -> Buffer {
    let columns = columns.clamp(view::SMALLEST.0, 400);
    let lines = lines.unwrap_or_else(|| view::wanted_lines(state)).clamp(view::SMALLEST.1, 400);
    let mut frame = Buffer::empty(Rect::new(0, 0, columns, lines));
    state.drawn(view::draw(state, &mut frame, charset));
    frame
}
