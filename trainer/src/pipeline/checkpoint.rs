//! A checkpoint that a user asked for while the training goes on: the drafter as it is, in z-lab's layout.

use super::lane::cause_text;
use crate::drafter::{self, DFlashDrafter};
use crate::target::TargetConfig;
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{IterationGuard, Kind, Profiler, Requests, span};
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Writes checkpoints when somebody asks for them.
pub(super) struct Checkpoints<'a> {
    requests: Requests,
    profiler: &'a Profiler,
    target: TargetConfig,
    /// The run's `checkpoints/`.
    directory: &'a Path,
}

impl<'a> Checkpoints<'a> {
    pub(super) fn new(profiler: &'a Profiler, target: TargetConfig, directory: &'a Path) -> Self {
        Self { requests: profiler.requests(), profiler, target, directory }
    }

    /// Writes the drafter after `step` steps, if somebody wants it; the pass becomes one of its own kind. What fails
    /// leaves a warning in the timeline, and never the training's end.
    pub(super) fn write_if_asked(&self, pass: &IterationGuard, drafter: &DFlashDrafter, step: usize) {
        if !self.requests.take_checkpoint() {
            return;
        }
        pass.kind(Kind::Checkpoint);
        let _span = span!("drafter.checkpoint");
        let dir = self.directory.join(format!("step-{step:06}"));
        // Out of memory arrives as a panic of tch.
        let written = catch_unwind(AssertUnwindSafe(|| self.write(drafter, &dir).map_err(|error| error.to_string())))
            .unwrap_or_else(|cause| Err(cause_text(cause.as_ref())));
        let (severity, text) = match &written {
            Ok(export) => (Severity::Info, format!("checkpoint: step {step} is in {}", export.display())),
            Err(error) => (Severity::Warning, format!("checkpoint: step {step} could not be written: {error}")),
        };
        self.profiler.mark(severity, &text);
        self.requests
            .checkpoint_written(written.map_err(|error| format!("{}: cannot write it: {error}", dir.display())));
    }

    /// `step-NNNNNN/export`, of which nobody sees a part: all of it is on the disk before it gets its name.
    fn write(&self, drafter: &DFlashDrafter, dir: &Path) -> io::Result<PathBuf> {
        if dir.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists already"));
        }
        let part = dir.with_extension("part");
        if part.exists() {
            fs::remove_dir_all(&part)?;
        }
        let written = drafter::save(drafter, &self.target, &part.join("export")).and_then(|()| {
            File::open(part.join("export/config.json"))?.sync_all()?;
            File::open(part.join("export"))?.sync_all()?;
            File::open(&part)?.sync_all()?;
            fs::rename(&part, dir)?;
            File::open(self.directory)?.sync_all()
        });
        if written.is_err() {
            // What is left of it is of no use to anyone, and takes room that may be what was missing.
            let _ = fs::remove_dir_all(&part);
        }
        written.map(|()| dir.join("export"))
    }
}
