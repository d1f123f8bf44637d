//! Reading a run's timing stream once.

use crate::error::Result;
use crate::part::Window;
use crate::run_dir::RunDir;
use crate::tail::Tail;
use crate::timeline::Timeline;
use crate::visit::Visit;

/// What is read of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Leave out what lies before this time, monotonic nanoseconds.
    pub from_ns: Option<i64>,
    /// Leave out what lies behind this time, monotonic nanoseconds.
    pub to_ns: Option<i64>,
}

impl ReadOptions {
    pub(crate) fn window(&self) -> Option<Window> {
        let window = Window { from_ns: self.from_ns.unwrap_or(i64::MIN), to_ns: self.to_ns.unwrap_or(i64::MAX) };
        (self.from_ns.is_some() || self.to_ns.is_some()).then_some(window)
    }
}

/// Reads everything that a run recorded, of all ranks and segments.
///
/// Damage is no error: it is skipped, and [`Timeline::health`] says what and where. A stream that does not end with an
/// END block has `health.ended == false`.
///
/// # Errors
/// If a file cannot be read, or was written by a newer dflash.
pub fn read(run: &RunDir) -> Result<Timeline> {
    read_with(run, &ReadOptions::default())
}

/// Reads what a run recorded at some time. Blocks of other times are passed by, and damage in them goes unnoticed; names,
/// totals and clock anchors are those of what was read.
///
/// # Errors
/// As [`read`].
pub fn read_with(run: &RunDir, options: &ReadOptions) -> Result<Timeline> {
    let mut tail = Tail::open(run)?.from_start().only(options.window());
    tail.poll()?;
    Ok(tail.finish())
}

/// Hands the records of a run to `visit` one by one, rank after rank, so that memory does not grow with the run. Returns
/// the timeline without the records: names, lanes, counters, totals, health.
///
/// # Errors
/// As [`read`].
pub fn visit(run: &RunDir, options: &ReadOptions, visit: &mut impl Visit) -> Result<Timeline> {
    let mut tail = Tail::open(run)?.from_start().only(options.window());
    tail.read_new(&mut |assembler, path, rank, batch, window| assembler.show(path, rank, batch, window, visit))?;
    tail.assembler.shown(visit);
    Ok(tail.finish())
}
