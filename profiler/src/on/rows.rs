//! iterations.csv out of spans: the stages of each iteration, summed.

use dflash_timeline::iterations::{IterationRow, IterationsWriter, RESIDUE, TOTAL};
use dflash_timeline::record::{Iteration, Span};

use super::hub::LaneShared;
use super::site;

/// The stages of the iteration that a lane is in.
#[derive(Debug, Default)]
pub(crate) struct StageSums {
    iteration: Option<u64>,
    /// In order of first use.
    stages: Vec<StageSum>,
}

/// The spans of one stage.
#[derive(Clone, Copy, Debug)]
struct StageSum {
    site: u32,
    begin_ns: i64,
    host_ns: u64,
    /// `None`: of some span it is not known.
    device_ns: Option<u64>,
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
        let device_ns = span.device.map(|device| device.duration_ns);
        match self.stages.iter_mut().find(|stage| stage.site == site) {
            Some(stage) => {
                stage.host_ns += span.duration_ns;
                stage.device_ns = stage.device_ns.zip(device_ns).map(|(sum, more)| sum + more);
            }
            None => {
                let (begin_ns, host_ns) = (span.begin_ns, span.duration_ns);
                self.stages.push(StageSum { site, begin_ns, host_ns, device_ns });
            }
        }
    }

    /// The iteration ended: its stages, and what they leave.
    fn take(&mut self, iteration: &Iteration) -> (Vec<StageSum>, u64) {
        let same = self.iteration.take() == Some(iteration.number);
        let stages = std::mem::take(&mut self.stages);
        let stages = if same { stages } else { Vec::new() };
        let covered: u64 = stages.iter().map(|stage| stage.host_ns).sum();
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
    /// Appends the rows of a finished iteration. A bare one has only its total: its stages were not timed.
    pub(crate) fn write(
        &mut self,
        lane: &LaneShared,
        iteration: &Iteration,
        sums: &mut StageSums,
        bare: bool,
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
        let mut write = |stage: &str, begin_ns: i64, host_ns, device_ns, tokens| {
            stage.clone_into(&mut row.stage);
            row.start_ns = begin_ns.saturating_add(self.to_unix_ns);
            (row.host_ns, row.device_ns, row.tokens) = (Some(host_ns), device_ns, tokens);
            self.csv.write(&row)
        };
        if !bare {
            for stage in stages {
                write(site::name(stage.site), stage.begin_ns, stage.host_ns, stage.device_ns, None)?;
            }
            write(RESIDUE, iteration.begin_ns, residue_ns, None, None)?;
        }
        write(TOTAL, iteration.begin_ns, iteration.duration_ns, None, iteration.tokens)
    }
}
