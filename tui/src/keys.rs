//! Keys and resizes, read on a thread of their own.
//!
//! A terminal that is gone stays readable for ever, and crossterm's poll then never returns, whatever its timeout
//! (crossterm issue 793). On its own thread it cannot keep the view from noticing the SIGHUP and ending.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event};

/// The thread looks this often whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the user does. Dropping it ends the thread, which nobody waits for: it may never hear of it.
pub struct Keys {
    events: Receiver<io::Result<Event>>,
    unwanted: Arc<AtomicBool>,
}

impl Keys {
    /// Starts to read.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn listen() -> io::Result<Self> {
        // A few keys may wait; a held key then waits in the terminal rather than in memory.
        let (sender, events) = sync_channel(16);
        let unwanted = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&unwanted);
        thread::Builder::new().name("dflash-keys".to_owned()).spawn(move || read(&sender, &done))?;
        Ok(Self { events, unwanted })
    }

    /// The next event within `patience`.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn next(&self, patience: Duration) -> io::Result<Option<Event>> {
        match self.events.recv_timeout(patience) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("reading keys ended")),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}

fn read(sender: &SyncSender<io::Result<Event>>, unwanted: &AtomicBool) {
    while !unwanted.load(Ordering::Relaxed) {
        let event = match event::poll(PATIENCE) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let failed = event.is_err();
        if sender.send(event).is_err() || failed {
            return;
        }
    }
}
