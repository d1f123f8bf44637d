//! Watches a training: a bar with the lanes' log lines above it, or only the lines.

use super::bar::style;
use dflash::args::train::LogFormat;
use dflash::output::say;
use dflash_trainer::pipeline::{LaneReport, Observer, Step};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::json;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

/// Shows a training on stderr.
pub struct Watcher {
    bar: ProgressBar,
    terminal: bool,
    format: LogFormat,
    last: Mutex<Option<Step>>,
}

impl Watcher {
    pub fn new(steps: usize, format: LogFormat) -> Self {
        let terminal = std::io::stderr().is_terminal() && format == LogFormat::Text;
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_style(style("train"));
        Self { bar, terminal, format, last: Mutex::new(None) }
    }

    /// A line of its own.
    pub fn note(&self, text: &str) {
        match self.format {
            LogFormat::Text => self.line(text),
            LogFormat::Json => self.line(&json!({ "note": text }).to_string()),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// What hides the bar while something else has the terminal.
    pub fn curtain(&self) -> Curtain {
        Curtain { bar: self.bar.clone(), terminal: self.terminal }
    }

    fn line(&self, text: &str) {
        // The bar must not be torn by a line.
        self.bar.suspend(|| say(text));
    }
}

/// Hides the bar while something else has the terminal.
pub struct Curtain {
    bar: ProgressBar,
    terminal: bool,
}

impl Curtain {
    /// Takes the bar away.
    pub fn close(&self) {
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Shows it again, where it can be shown.
    pub fn open(&self) {
        if self.terminal {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// A line of its own, if it says anything.
    pub fn note(&self, text: &str) {
        if !text.is_empty() {
            self.bar.suspend(|| say(&format!("dflash: {text}")));
        }
    }
}

impl Observer for Watcher {
    fn note(&self, text: &str) {
        Self::note(self, text);
    }

    fn step(&self, step: &Step) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if step.loss.is_some() {
            if !self.terminal {
                self.line(&match self.format {
                    LogFormat::Text => format!("step {}/{}: {}", step.step, step.steps, summary(step)),
                    LogFormat::Json => json!({ "step": step }).to_string(),
                });
            }
            *last = Some(step.clone());
        }
        self.bar.set_position(step.step as u64);
        if let Some(last) = &*last {
            self.bar.set_message(summary(last));
        }
    }

    fn lane(&self, report: &LaneReport) {
        self.line(&match self.format {
            LogFormat::Text => report.to_string(),
            LogFormat::Json => json!({ "lane": report }).to_string(),
        });
    }
}

fn summary(step: &Step) -> String {
    let number = |value: Option<f64>, digits: usize| value.map_or("?".to_owned(), |v| format!("{v:.digits$}"));
    format!(
        "loss {}, accuracy {}, {} tokens/s, {}",
        number(step.loss, 3),
        number(step.accuracy, 3),
        number(step.tokens_per_s, 0),
        step.waiting
    )
}
