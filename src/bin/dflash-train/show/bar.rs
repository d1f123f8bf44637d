//! A progress bar on stderr; without a terminal, a line now and then.

use dflash::output::{no_color, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines of a log without a terminal are at least this far apart.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress of one thing.
pub struct Bar {
    label: &'static str,
    bar: ProgressBar,
    began: Instant,
    /// When the last line was printed; `None` on a terminal.
    last_line: Option<Mutex<Instant>>,
}

impl Bar {
    /// A bar that is not shown before there is something to show.
    pub fn new(label: &'static str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target).with_style(style(label));
        let began = Instant::now();
        Self { label, bar, began, last_line: (!terminal).then(|| Mutex::new(began)) }
    }

    /// Shows how much is done; `message` is only made when it is shown.
    pub fn show(&self, done: u64, of: u64, message: impl FnOnce() -> String) {
        match &self.last_line {
            None => {
                self.bar.set_length(of);
                self.bar.set_position(done);
                self.bar.set_message(message());
            }
            Some(last) => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= LINE_EVERY || (done == of && done > 0) {
                    *last = Instant::now();
                    say(&format!("{}: {done}/{of}, {}", self.label, message()));
                }
            }
        }
    }

    /// `count` a second since the beginning.
    pub fn rate(&self, count: usize) -> f64 {
        count as f64 / self.began.elapsed().as_secs_f64().max(1e-9)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The look that all bars share.
pub(super) fn style(label: &str) -> ProgressStyle {
    let colour = if no_color() { "" } else { ".cyan/dim" };
    let template = format!("{label} {{bar:30{colour}}} {{pos}}/{{len}} {{elapsed}} (left {{eta}}) {{wide_msg}}");
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
