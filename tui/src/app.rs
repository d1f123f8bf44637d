//! The loop: look at the run, draw, wait for a key or for the interval to pass.

use std::time::{Duration, Instant};

use crossterm::event::Event;

use crate::keys::Keys;
use crate::source::Source;
use crate::state::{Next, State};
use crate::terminal::{Screen, Signals};
use crate::view::adapt::Charset;
use crate::{End, Error, Result, input, view};

/// A signal is noticed this late at most.
const PATIENCE: Duration = Duration::from_millis(200);

/// Shows `state` of `source` until the user or a signal ends it.
pub fn follow(mut source: Source, mut state: State, charset: Charset) -> Result<End> {
    let signals = Signals::listen()?;
    let mut screen = Screen::take()?;
    let keys = Keys::listen()?;
    let mut looked = Instant::now();
    draw(&mut screen, &mut state, charset)?;
    loop {
        let due = state.interval.saturating_sub(looked.elapsed());
        let next = wait(&keys, due.min(PATIENCE), &mut state)?;
        if let Some(signal) = signals.received() {
            return Ok(End::Signal(signal));
        }
        if screen.is_lost() {
            return Err(Error::Panicked);
        }
        match next {
            Some(Next::Quit) => return Ok(End::Quit),
            Some(Next::Clear) => screen.terminal().clear()?,
            Some(Next::Recompute) => state.model = source.model(state.window),
            Some(Next::Draw) => {}
            None if looked.elapsed() < state.interval => continue,
            None => {
                looked = Instant::now();
                if !state.paused {
                    source.poll();
                    state.model = source.model(state.window);
                }
            }
        }
        // Also when nothing has changed: writing is how one hears that the terminal is gone.
        draw(&mut screen, &mut state, charset)?;
    }
}

/// What the keys that came within `patience` ask for; `None` if none did. All that are waiting are taken at once, so
/// that a held key does not outrun the drawing.
fn wait(keys: &Keys, patience: Duration, state: &mut State) -> Result<Option<Next>> {
    let mut patience = patience;
    let mut asked = None;
    while let Some(event) = keys.next(patience)? {
        patience = Duration::ZERO;
        let next = match event {
            Event::Key(key) => input::action(key, state.view).map(|action| state.apply(action)),
            Event::Resize(..) => Some(Next::Draw),
            _ => None,
        };
        asked = asked.max(next);
        if asked == Some(Next::Quit) {
            break;
        }
    }
    Ok(asked)
}

fn draw(screen: &mut Screen, state: &mut State, charset: Charset) -> Result<()> {
    let mut extent = None;
    screen.terminal().draw(|frame| extent = Some(view::draw(state, frame.buffer_mut(), charset)))?;
    if let Some(extent) = extent {
        state.drawn(extent);
    }
    Ok(())
}
