//! A part of one run: what is to be read for a selection.

use super::head::{self, Head};
use super::{Everything, Place};
use crate::error::Result;
use crate::passes::Taking;
use crate::window::{Selection, Window};
use dflash_timeline::{ReadOptions, RunDir, Timeline};

/// A selection on a run's own clock, and what is to be read for it: of a stretch of time only the blocks that hold it.
pub(crate) fn part(run: &RunDir, selection: &Selection) -> Result<(Window, ReadOptions)> {
    if selection.last.is_none() && selection.window.is_none() {
        let (lanes, ranks) = (selection.lanes.clone(), selection.ranks.clone());
        return Ok((Window { lanes, ranks, ..Window::default() }, ReadOptions::default()));
    }
    let head = Head::read(run, true)?;
    let window = selection.place(&head::clock(&[head], &[Place::default()]))?;
    let options = head::options(run, &window)?;
    Ok((window, options))
}

/// Reads what a selection asks for, with some time before it for what reaches in.
///
/// # Errors
/// If the run cannot be read, or lacks what is asked for.
pub fn read_part(run: &RunDir, selection: &Selection) -> Result<(Timeline, Window)> {
    let (window, options) = part(run, selection)?;
    let timeline = dflash_timeline::read_with(run, &options)?;
    check(run, &timeline, &window)?;
    Ok((timeline, window))
}

/// Refuses lanes and ranks that the run does not have. Those that did nothing in a stretch of time are known from others.
pub(crate) fn check(run: &RunDir, timeline: &Timeline, window: &Window) -> Result<()> {
    let known = window.check_lanes(timeline);
    if known.is_ok() || (window.from_ns.is_none() && window.to_ns.is_none()) {
        return known;
    }
    window.check_lanes(&dflash_timeline::visit(run, &ReadOptions::default(), &mut Taking(&mut Everything))?)
}
