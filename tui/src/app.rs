//! The loop: look at the run, draw, wait for a key or for the interval to pass.

use std::time::{Duration, Instant};

use crossterm::event::Event;

use crate::keys::Keys;
use crate::remote::Remote;
use crate::source::{Governor, Source};
use crate::state::{Next, State};
use crate::terminal::{Screen, Signals};
use crate::view::adapt::Charset;
use crate::{End, Error, Result, input, view};

/// A signal is noticed this late at most.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is shown, and all that it is shown with.
struct App {
    source: Source,
    state: State,
    charset: Charset,
    screen: Screen,
    remote: Remote,
    governor: Governor,
    looked: Instant,
}

/// Shows `state` of `source` until the user or a signal ends it.
pub fn follow(source: Source, state: State, charset: Charset) -> Result<End> {
    let signals = Signals::listen()?;
    let screen = Screen::take()?;
    let keys = Keys::listen()?;
    let (remote, governor, looked) = (Remote::default(), Governor::default(), Instant::now());
    let mut app = App { source, state, charset, screen, remote, governor, looked };
    app.screen.mouse(app.state.mouse)?;
    app.draw()?;
    loop {
        let due = app.state.interval.saturating_sub(app.looked.elapsed());
        let next = wait(&keys, due.min(PATIENCE), &mut app.state)?;
        if let Some(signal) = signals.received() {
            return Ok(End::Signal(signal));
        }
        if app.screen.is_lost() {
            return Err(Error::Panicked);
        }
        if signals.stop_asked() || next == Some(Next::Suspend) {
            app.screen.suspend()?;
            signals.was_continued();
        } else if signals.was_continued() {
            app.screen.continued()?;
        }
        if next == Some(Next::Quit) {
            return Ok(End::Quit);
        }
        if app.turn(next)? {
            app.draw()?;
        }
    }
}

impl App {
    /// Does what a key asked for, or what the passing of time does; whether there is something to draw.
    fn turn(&mut self, next: Option<Next>) -> Result<bool> {
        let told = self.remote.tell(&mut self.state);
        if let (Some(command), Some(run)) = (self.state.take_wanted(), self.source.run()) {
            let mut ranks: Vec<u32> = self.state.model.lanes.iter().map(|lane| lane.rank).chain([0]).collect();
            ranks.sort_unstable();
            ranks.dedup();
            self.remote.ask(run, &ranks, command, &mut self.state);
        }
        self.screen.mouse(self.state.mouse)?;
        match next {
            Some(Next::Clear) => self.screen.terminal().clear()?,
            Some(Next::Recompute) => self.compute(),
            Some(_) => {}
            None if self.looked.elapsed() < self.state.interval => return Ok(told),
            None => self.look(),
        }
        // Also when nothing has changed: writing is how one hears that the terminal is gone.
        Ok(true)
    }

    /// The interval has passed.
    fn look(&mut self) {
        let elapsed = self.looked.elapsed();
        self.looked = Instant::now();
        if self.state.tick(elapsed) {
            self.compute();
        } else if !self.state.paused && self.governor.is_due(self.looked) {
            let source = &mut self.source;
            self.governor.run(|| {
                if source.poll() {
                    self.state.model = source.model(&self.state.look());
                }
            });
        }
    }

    fn compute(&mut self) {
        self.state.model = self.source.model(&self.state.look());
    }

    fn draw(&mut self) -> Result<()> {
        let (state, charset) = (&self.state, self.charset);
        let mut extent = None;
        self.screen.terminal().draw(|frame| extent = Some(view::draw(state, frame.buffer_mut(), charset)))?;
        if let Some(extent) = extent {
            self.state.drawn(extent);
        }
        Ok(())
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
            Event::Key(key) => input::action(key, state.focus()).map(|action| state.apply(action)),
            Event::Mouse(mouse) => input::mouse(mouse).map(|action| state.apply(action)),
            Event::Resize(..) => Some(Next::Draw),
            _ => None,
        };
        asked = asked.max(next);
        if matches!(asked, Some(Next::Quit | Next::Suspend)) {
            break;
        }
    }
    Ok(asked)
}
