//! iterations.csv out of spans: the stages of each iteration, summed.

use dflash_timeline::iterations::{IterationRow, IterationsWriter, RESIDUE, TOTAL};
use dflash_timeline::record::{Iteration, Span};

use super::hub::LaneShared;
use super::site;

/// The stages of the iteration that a lane is in.
#[derive(Debug, Default)]
pub(crate) struct StageSums {
    iteration: Option<u64>,
    /// Site, first begin, host time; in order of first use.
    stages: Vec<(u32, i64, u64)>,
}

impl StageSums {
    /// A span ended; only stages count.
    pub(crate) fn add(&mut self, site: u32, span: &Span) {
        if span.depth > 0 || span.iteration.is_none() {
            return;
        }
        if self.iteration != span.iteration {
            self.iteration = span.iteration;
            self.stages.clear();
        }
        match self.stages.iter_mut().find(|(known, _, _)| *known == site) {
            Some((_, _, sum)) => *sum += span.duration_ns,
            None => self.stages.push((site, span.begin_ns, span.duration_ns)),
        }
    }

    /// The iteration ended: its stages, and what they leave.
    fn take(&mut self, iteration: &Iteration) -> (Vec<(u32, i64, u64)>, u64) {
        let same = self.iteration.take() == Some(iteration.number);
        let stages = std::mem::take(&mut self.stages);
        let stages = if same { stages } else { Vec::new() };
        let covered: u64 = stages.iter().map(|(_, _, ns)| ns).sum();
        (stages, iteration.duration_ns.saturating_sub(covered))
    }
}

/// Writes iterations.csv.
#[derive(Debug)]
pub(crate) struct Rows {
    pub csv: IterationsWriter,
    pub rank: u32,
    pub attempt: u32,
    /// Nanoseconds from CLOCK_MONOTONIC to CLOCK_REALTIME at the attempt's start: the dates of one attempt never step.
    pub to_unix_ns: i64,
}

impl Rows {
    /// Appends the rows of a finished iteration.
    pub(crate) fn write(
        &mut self,
        lane: &LaneShared,
        iteration: &Iteration,
        sums: &mut StageSums,
    ) -> dflash_timeline::Result<()> {
        let (stages, residue_ns) = sums.take(iteration);
        let mut row = IterationRow {
            attempt: self.attempt,
            rank: self.rank,
            lane: lane.name.clone(),
            device: lane.device.clone(),
            iteration: iteration.number,
            kind: iteration.kind,
            ..IterationRow::default()
        };
        let own = [
            (RESIDUE, iteration.begin_ns, residue_ns, None),
            (TOTAL, iteration.begin_ns, iteration.duration_ns, iteration.tokens),
        ];
        let stages = stages.into_iter().map(|(site, begin_ns, ns)| (site::name(site), begin_ns, ns, None));
        for (stage, begin_ns, host_ns, tokens) in stages.chain(own) {
            stage.clone_into(&mut row.stage);
            row.start_ns = begin_ns.saturating_add(self.to_unix_ns);
            row.host_ns = Some(host_ns);
            row.tokens = tokens;
            self.csv.write(&row)?;
        }
        Ok(())
    }
}
