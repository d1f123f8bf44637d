//! Taking the terminal, and giving it back however the program ends.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::{cursor, execute, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;

use crate::stderr;

/// Whether this process holds the terminal; the guard and the panic hook both look, the first one restores.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while something is written to the screen: a panic in another thread must not give the terminal back in the middle
/// of a frame, whose rest would then stand where its message should.
static WRITING: Mutex<()> = Mutex::new(());

/// How long a panic waits for that. The panic may be one of the drawing itself, which then never ends.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the mouse was taken.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen. Dropping it restores what was there, and so does a panic.
pub struct Screen {
    /// Never dropped: it would print to stderr that a terminal that is gone has no cursor, and panic because it cannot.
    /// [`restore`] does all that is to be done.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Switches to raw mode and the alternate screen.
    ///
    /// # Errors
    /// When stdout is no terminal, or refuses.
    pub fn take() -> io::Result<Self> {
        hook_panics();
        match enter().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout()))) {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Gives the terminal back and stops the program, as Ctrl-Z does; returns when the shell continues it.
    ///
    /// # Errors
    /// When the terminal cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        let mouse = MOUSE.load(Ordering::SeqCst);
        restore();
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.resume(mouse)
    }

    /// Takes the terminal again after it was stopped from outside: the shell may have set it as it likes.
    ///
    /// # Errors
    /// When the terminal cannot be taken again.
    pub fn continued(&mut self) -> io::Result<()> {
        let mouse = MOUSE.load(Ordering::SeqCst);
        restore();
        self.resume(mouse)
    }

    fn resume(&mut self, mouse: bool) -> io::Result<()> {
        enter()?;
        self.mouse(mouse)?;
        self.terminal.clear()
    }

    /// Takes the mouse, or gives it back.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn mouse(&mut self, wanted: bool) -> io::Result<()> {
        if MOUSE.swap(wanted, Ordering::SeqCst) == wanted {
            return Ok(());
        }
        if wanted { execute!(io::stdout(), EnableMouseCapture) } else { execute!(io::stdout(), DisableMouseCapture) }
    }

    /// Whether the terminal was given back meanwhile, because some thread panicked.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !TAKEN.load(Ordering::SeqCst)
    }

    /// Draws a frame, unless the terminal was given back meanwhile.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_lost() {
            self.terminal.draw(|frame| draw(frame.buffer_mut()))?;
        }
        Ok(())
    }

    /// Clears the screen, so that the next frame is drawn whole.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_lost() { Ok(()) } else { self.terminal.clear() }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Raw mode, alternate screen, no cursor.
fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    stderr::take();
    execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
}

/// Leaves the alternate screen and raw mode, once. Errors are ignored: after SIGHUP there is no terminal left to restore.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut stdout = io::stdout();
        if MOUSE.swap(false, Ordering::SeqCst) {
            let _ = execute!(stdout, DisableMouseCapture);
        }
        let _ = execute!(stdout, terminal::LeaveAlternateScreen, cursor::Show);
        let _ = stdout.flush();
        let _ = terminal::disable_raw_mode();
        stderr::give_back();
    }
}

/// Restores the terminal before the panic's message is printed, else the message would vanish with the alternate screen.
fn hook_panics() {
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if HOOKED.swap(true, Ordering::SeqCst) {
        return;
    }
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let began = Instant::now();
        let writing = loop {
            match WRITING.try_lock() {
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(1)),
                other => break other.ok(),
            }
        };
        restore();
        drop(writing);
        previous(info);
    }));
}

/// Remembers the last of the signals that should end the view (the loop asks, ends, and the guard restores), and those
/// that stop and continue it.
pub struct Signals {
    last: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
    /// The program goes on when nobody listens any more.
    goes_on: bool,
}

impl Signals {
    /// Listens for SIGTERM, SIGHUP and SIGINT (Ctrl-C is a key in raw mode, but `kill -INT` is not). Where the program
    /// `goes_on` without the view, it has handlers of its own for these, and they are asked too.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn listen(goes_on: bool) -> io::Result<Self> {
        let (stop, continued) = (Arc::default(), Arc::default());
        let mut signals = Self { last: Arc::default(), stop, continued, handlers: Vec::new(), goes_on };
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
            let number = usize::try_from(signal).unwrap_or_default();
            signals.handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&signals.last), number)?);
        }
        for (signal, flag) in
            [(signal_hook::consts::SIGTSTP, &signals.stop), (signal_hook::consts::SIGCONT, &signals.continued)]
        {
            signals.handlers.push(signal_hook::flag::register(signal, Arc::clone(flag))?);
        }
        Ok(signals)
    }

    /// Whether SIGTSTP came since the last call.
    pub fn stop_asked(&self) -> bool {
        self.stop.swap(false, Ordering::SeqCst)
    }

    /// Whether the program was stopped and continued since the last call.
    pub fn was_continued(&self) -> bool {
        self.continued.swap(false, Ordering::SeqCst)
    }

    /// The signal that came, or comes within so long.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Option<i32> {
        let began = Instant::now();
        while self.received().is_none() && began.elapsed() < patience {
            thread::sleep(Duration::from_millis(10));
        }
        self.received()
    }

    /// The signal that came, if any.
    #[must_use]
    pub fn received(&self) -> Option<i32> {
        match self.last.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
        if self.goes_on {
            // Handlers that the program had before are asked anyway; of this one it had none. Without it Ctrl-Z does
            // nothing, which is no reason to end.
            let stop = signal_hook::consts::SIGTSTP;
            let _ = signal_hook::flag::register_conditional_default(stop, Arc::new(AtomicBool::new(true)));
        }
    }
}
