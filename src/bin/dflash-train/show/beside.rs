//! `dflash train --top`: the live view in the training's own process.

use super::watcher::Curtain;
use dflash::output::say;
use dflash_reports::timeline::RunDir;
use dflash_tui::view::adapt::Charset;
use dflash_tui::{End, Error, Inside, Options};
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

/// The view of a training, on a thread of its own, until the user ends it. Dropping it ends it too, and waits until the
/// terminal is as before.
pub struct Beside {
    inside: Inside,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Shows `run`; the `curtain` is closed, and opens when the view ends. Without a terminal there is nothing to show it in,
    /// which is said: a training is no worse for it.
    pub fn show(run: &RunDir, curtain: Curtain) -> Self {
        let inside = Inside::default();
        if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
            curtain.open();
            say("dflash: --top needs a terminal on stdin and stdout; the training goes on without");
            return Self { inside, thread: None };
        }
        let (run, own) = (run.clone(), inside.clone());
        let view = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| dflash_tui::run(run, &options(own.clone()))));
            tell(&own);
            curtain.open();
            curtain.note(&ended.map_or_else(|_| "the view failed; please report it".to_owned(), |ended| words(&ended)));
        };
        let thread = thread::Builder::new().name("dflash-top".to_owned()).spawn(view);
        if let Err(error) = &thread {
            say(&format!("dflash: there is no live view: {error}; the training goes on without"));
        }
        Self { inside, thread: thread.ok() }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.inside.finish();
        if let Some(thread) = self.thread.take() {
            // What went wrong in it was said.
            let _ = thread.join();
        }
    }
}

fn options(inside: Inside) -> Options {
    let mut options = Options::default();
    options.charset = Charset::of_environment(|name| std::env::var(name).ok());
    options.inside = Some(inside);
    options
}

/// What the training said meanwhile.
fn tell(inside: &Inside) {
    let kept = inside.take_lines();
    if kept.left_out > 0 {
        say(&format!("({} lines of the log are left out here; `dflash report` has their numbers)", kept.left_out));
    }
    kept.lines.iter().for_each(|line| say(line));
}

/// Why there is no view any more; nothing if the training is over too.
fn words(ended: &Result<End, Error>) -> String {
    match ended {
        Ok(End::Quit) => "the view is closed and the training goes on; `dflash top` shows it again".to_owned(),
        Ok(End::Interrupt | End::Signal(_)) => "the training ends after the step that runs".to_owned(),
        Ok(End::Over) => String::new(),
        Err(error) => format!("the view ended: {error}"),
    }
}
