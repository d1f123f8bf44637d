//! The loop: look at the run, draw, wait for a key or for the interval to pass.

use std::time::{Duration, Instant};

use crossterm::event::Event;

use crate::keys::Keys;
use crate::remote::Remote;
use crate::source::{Governor, Source, now_unix_ns};
use crate::state::{Model, Next, State};
use crate::stderr::Said;
use crate::terminal::{Screen, Signals};
use crate::view::adapt::Charset;
use crate::{End, Error, Inside, Result, input, view};

/// A signal is noticed this late at most.
const PATIENCE: Duration = Duration::from_millis(200);
/// A terminal that goes away is first one that cannot be used; the signal that says so comes this late at most.
const HANGING_UP: Duration = Duration::from_secs(1);
/// As `PATIENCE`, while something is being read, which is wanted soon.
const READING: Duration = Duration::from_millis(20);

/// What is shown, and all that it is shown with.
struct App {
    source: Source,
    state: State,
    charset: Charset,
    screen: Screen,
    remote: Remote,
    governor: Governor,
    looked: Instant,
    inside: Option<Inside>,
    said: Option<Said>,
}

/// Shows `state` of `source` until the user or a signal ends it; from `inside` the run, also until that is over.
pub fn follow(source: Source, state: State, charset: Charset, inside: Option<&Inside>) -> Result<End> {
    let signals = Signals::listen(inside.is_some())?;
    let said = inside.and_then(|_| Said::prepare());
    let screen = Screen::take()?;
    let keys = Keys::listen()?;
    let (remote, governor, looked) = (Remote::default(), Governor::default(), Instant::now());
    let inside = inside.cloned();
    let mut app = App { source, state, charset, screen, remote, governor, looked, inside, said };
    let end = match app.run(&keys, &signals) {
        // The run behind the view must hear of it.
        Err(Error::Terminal(error)) => signals.within(HANGING_UP).map(End::Signal).ok_or(Error::Terminal(error)),
        end => end,
    };
    let App { screen, inside, said, .. } = app;
    drop(screen);
    if let Some(inside) = inside {
        if let Some(mut said) = said {
            inside.keep(said.rest(), now_unix_ns());
        }
        drop(signals);
        pass_on(&end)?;
    }
    end
}

/// What the user asked of the view is meant for the run behind it: it ends as it does without a view. Of SIGHUP and
/// SIGTERM it has heard itself.
fn pass_on(end: &Result<End>) -> Result<()> {
    if let Ok(End::Interrupt) = end {
        signal_hook::low_level::raise(signal_hook::consts::SIGINT)?;
    }
    Ok(())
}

impl App {
    /// Draws, waits, and does what is asked for, until the end.
    fn run(&mut self, keys: &Keys, signals: &Signals) -> Result<End> {
        self.screen.mouse(self.state.mouse)?;
        self.draw()?;
        loop {
            let due = self.state.interval.saturating_sub(self.looked.elapsed());
            let patience = if self.state.reading { READING } else { due.min(PATIENCE) };
            let next = wait(keys, patience, &mut self.state)?;
            if let Some(signal) = signals.received() {
                return Ok(End::Signal(signal));
            }
            if self.screen.is_lost() {
                return Err(Error::Panicked);
            }
            if self.inside.as_ref().is_some_and(Inside::is_over) {
                return Ok(End::Over);
            }
            if signals.stop_asked() || next == Some(Next::Suspend) {
                self.screen.suspend()?;
                signals.was_continued();
            } else if signals.was_continued() {
                self.screen.continued()?;
            }
            match next {
                Some(Next::Quit) => return Ok(End::Quit),
                Some(Next::Interrupt) => return Ok(End::Interrupt),
                _ => {}
            }
            if self.turn(next)? {
                self.draw()?;
            }
        }
    }

    /// Does what a key asked for, or what the passing of time does; whether there is something to draw.
    fn turn(&mut self, next: Option<Next>) -> Result<bool> {
        let told = self.remote.tell(&mut self.state) | self.arrive();
        if let Some(command) = self.state.take_wanted() {
            self.remote.ask(self.source.processes(), command, &mut self.state);
        }
        self.screen.mouse(self.state.mouse)?;
        match next {
            Some(Next::Clear) => self.screen.clear()?,
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
        // What is played waits for what is being read.
        if !self.state.reading && self.state.tick(elapsed) {
            self.compute();
        } else if !self.state.paused && self.governor.is_due(self.looked) {
            let source = &mut self.source;
            let new = self.governor.run(|| source.poll().then(|| source.model(&self.state.look())));
            if let Some(new) = new {
                self.show(new);
            }
        }
    }

    /// Makes the numbers of what is looked at. While that is being read, those from before stay.
    fn compute(&mut self) {
        self.state.reading = !self.source.prepare(&self.state.look());
        if !self.state.reading {
            self.show(self.source.model(&self.state.look()));
        }
    }

    /// Shows what was read meanwhile; whether anything was. Whoever has moved on meanwhile waits for what is there.
    fn arrive(&mut self) -> bool {
        let arrived = self.source.arrive();
        if arrived {
            self.compute();
        }
        arrived
    }

    fn show(&mut self, model: Model) {
        self.state.model = model;
        if let Some(inside) = &self.inside {
            let lines = self.said.as_mut().map(Said::lines).unwrap_or_default();
            inside.keep(lines, now_unix_ns());
            inside.tell(&mut self.state.model);
        }
    }

    fn draw(&mut self) -> Result<()> {
        let (state, charset) = (&self.state, self.charset);
        let mut extent = None;
        self.screen.draw(|frame| extent = Some(view::draw(state, frame, charset)))?;
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
        if matches!(asked, Some(Next::Quit | Next::Interrupt | Next::Suspend)) {
            break;
        }
    }
    Ok(asked)
}
