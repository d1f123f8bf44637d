//! dflash's own profiler, as a training uses it: a lane, a running writer, files in a run directory.

use std::any::Any;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{
    Counter, Kind, Level, Options, Profiler, Severity, Totals, begin_iteration, flow_put, set_level, span,
};
use tempfile::TempDir;

use crate::subject::{Subject, time, wait_until};

/// How often the writer empties the rings here: more often than in a training, so that rounds can follow each other.
const WRITE_EVERY: Duration = Duration::from_millis(1);
/// Bytes before the stream's end in which a mark is looked for: blocks that came after it are small, but may be many.
const NEAR: u64 = 64 << 10;

/// Any error of a bench: it ends the program, which prints it.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A recording into a temporary run.
#[derive(Debug)]
pub struct Recording {
    profiler: Profiler,
    depth: Counter,
    run: RunDir,
    directory: TempDir,
    settled: AtomicU64,
}

impl Recording {
    /// Starts it; `ring` is how many records a lane may be ahead of the writer, the profiler's own default with `None`.
    pub fn start(ring: Option<usize>) -> Result<Self, Fault> {
        let directory = tempfile::tempdir()?;
        let run = RunDir::create(directory.path(), "bench", Manifest::default())?;
        let mut options = Options::new(run.clone());
        options.write_every = WRITE_EVERY;
        options.ring = ring.unwrap_or(options.ring);
        let profiler = Profiler::start(options)?;
        let depth = profiler.counter("bench.depth", "items");
        Ok(Self { profiler, depth, run, directory, settled: AtomicU64::new(0) })
    }

    /// Ends it. What was dropped or misplaced must be 0, or the bench has measured something else.
    pub fn finish(self) -> Result<Totals, Fault> {
        let totals = self.profiler.finish();
        let trouble = self.profiler.trouble();
        self.directory.close()?;
        match trouble {
            Some(trouble) => Err(trouble.into()),
            None => Ok(totals),
        }
    }

    /// Waits until the writer has emptied the rings. It takes marks after what the lanes recorded, so a mark that stands
    /// in the stream says so; but the first may have overtaken what came while the rings were being emptied.
    fn settle(&self) {
        for _ in 0..2 {
            let text = format!("settled-{}.", self.settled.fetch_add(1, Ordering::Relaxed));
            self.profiler.mark(Severity::Info, &text);
            wait_until(|| self.has_written(text.as_bytes()).unwrap_or(false));
        }
    }

    /// Whether a text stands near the stream's end. That may lie in the last segment or the one before.
    fn has_written(&self, text: &[u8]) -> io::Result<bool> {
        let segments = fs::read_dir(self.run.timeline_dir())?.map(|segment| Ok(segment?.path()));
        let mut segments = segments.collect::<io::Result<Vec<PathBuf>>>()?;
        segments.sort();
        for segment in segments.iter().rev().take(2) {
            let mut file = File::open(segment)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(end.saturating_sub(NEAR)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            if bytes.windows(text.len()).any(|window| window == text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One thing that this recording can be asked for.
    #[must_use]
    pub fn subject(&self, what: What) -> Ours<'_> {
        Ours { recording: self, what }
    }
}

/// What of ours is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A stage's span, recorded: what the peers' spans are compared with.
    Stage,
    /// A span with an index inside a stage, recorded.
    Layer,
    /// The same, where the level leaves it out.
    Skipped,
    /// A span while the level is off.
    Off,
    /// An iteration's begin and end.
    Iteration,
    /// A reading of a counter.
    Counter,
    /// One end of a hand-off.
    Flow,
}

/// A [`What`] of a [`Recording`].
#[derive(Debug)]
pub struct Ours<'a> {
    recording: &'a Recording,
    what: What,
}

impl Subject for Ours<'_> {
    fn name(&self) -> &'static str {
        match self.what {
            What::Stage => "dflash",
            What::Layer => "dflash, in a stage, with an index",
            What::Skipped => "dflash, in a stage, left out by the level",
            What::Off => "dflash, off",
            What::Iteration => "dflash, an iteration",
            What::Counter => "dflash, a counter's reading",
            What::Flow => "dflash, one end of a hand-off",
        }
    }

    fn enter(&self) -> Box<dyn Any> {
        Box::new(self.recording.profiler.lane("bench", "cpu").enter())
    }

    fn round(&self, spans: u32) -> Duration {
        set_level(match self.what {
            What::Off => Level::Off,
            What::Layer => Level::Layers,
            _ => Level::Stages,
        });
        match self.what {
            What::Iteration => time(spans, |i| begin_iteration(Kind::Train).tokens(u64::from(i))),
            What::Counter => time(spans, |i| self.recording.depth.record(f64::from(i))),
            What::Flow => time(spans, |i| flow_put(u64::from(i))),
            What::Stage | What::Off => {
                let _iteration = begin_iteration(Kind::Train);
                stages(spans)
            }
            What::Layer | What::Skipped => {
                let _iteration = begin_iteration(Kind::Train);
                let _stage = span!("bench.stage");
                layers(spans)
            }
        }
    }

    fn settle(&self) {
        self.recording.settle();
    }
}

/// The same machine code on and off, as in a training.
#[inline(never)]
fn stages(spans: u32) -> Duration {
    time(spans, |i| {
        let _span = span!("bench.span");
        black_box(i);
    })
}

#[inline(never)]
fn layers(spans: u32) -> Duration {
    time(spans, |i| {
        let _span = span!("bench.layer", index = i);
        black_box(i);
    })
}
