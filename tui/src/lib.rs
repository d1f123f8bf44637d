#![doc = include_str!("../README.md")]

mod app;
mod error;
pub mod input;
mod keys;
mod print;
mod source;
pub mod state;
mod svg;
mod terminal;
pub mod view;

use std::time::Duration;

pub use error::{Error, Result};
pub use print::frame_text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use source::Source;
use state::{Action, State, View, WindowLength};
pub use svg::frame_svg;
use view::adapt::{Charset, Colors};

use dflash_reports::timeline::RunDir;

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
    /// What the terminal can show; full colour and Unicode.
    pub charset: Charset,
    /// Columns and lines of a printed frame; 120 columns, and as many lines as it takes.
    pub size: (u16, Option<u16>),
}

impl Default for Options {
    fn default() -> Self {
        let (interval, charset) = (Duration::from_secs(1), Charset::default());
        Self { view: None, interval, window: None, charset, size: (120, None) }
    }
}

/// How the view came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The user left.
    Quit,
    /// This signal asked for it; the exit code is 128 more.
    Signal(i32),
}

/// Shows a run in the terminal until the user leaves. The terminal is as before afterwards, whatever happens.
///
/// # Errors
/// When the run cannot be read or the terminal cannot be used.
pub fn run(run: RunDir, options: &Options) -> Result<End> {
    let (source, state) = look(run, options)?;
    app::follow(source, state, options.charset)
}

/// The run as text, once.
///
/// # Errors
/// When the run cannot be read.
pub fn once(run: RunDir, options: &Options) -> Result<String> {
    let (_, mut state) = look(run, options)?;
    state.keys = false;
    let charset = Charset { colors: Colors::None, ..options.charset };
    let mut print = |view| frame_text(&frame_of(&mut state, view, options.size, charset));
    if let Some(view) = options.view {
        return Ok(print(view));
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
pub fn frame(run: RunDir, options: &Options) -> Result<Buffer> {
    let (_, mut state) = look(run, options)?;
    let view = state.view;
    Ok(frame_of(&mut state, view, options.size, options.charset))
}

/// Columns of the terminal that stdout is; `None` if it is none.
#[must_use]
pub fn terminal_width() -> Option<u16> {
    use std::io::IsTerminal;
    let columns = std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok())?;
    columns.map(|(columns, _)| columns)
}

fn look(run: RunDir, options: &Options) -> Result<(Source, State)> {
    let source = Source::open(run)?;
    let usual = if source.is_live() { WindowLength::Minute } else { WindowLength::Whole };
    let window = options.window.unwrap_or(usual);
    let mut state = State::new(source.model(window), options.interval, window);
    state.apply(Action::Show(options.view.unwrap_or_default()));
    Ok((source, state))
}

fn frame_of(state: &mut State, view: View, (columns, lines): (u16, Option<u16>), charset: Charset) -> Buffer {
    state.apply(Action::Show(view));
    let columns = columns.clamp(view::SMALLEST.0, 400);
    let lines = lines.unwrap_or_else(|| view::wanted_lines(state)).clamp(view::SMALLEST.1, 400);
    let mut frame = Buffer::empty(Rect::new(0, 0, columns, lines));
    state.drawn(view::draw(state, &mut frame, charset));
    frame
}
