//! Writes the stream as the profiler does: a block each 225 ms, with totals and what is open.

use dflash_timeline::record::{LaneId, LaneTotals, Totals};
use dflash_timeline::{Result, SegmentWriter};

use crate::stream::{Event, LANES};

/// What has been written so far.
#[derive(Default)]
pub struct Written {
    lanes: [u64; LANES as usize],
    pub records: u64,
}

impl Written {
    pub fn totals(&self) -> Totals {
        Totals { emitted: self.records, ..Totals::default() }
    }

    /// Writes some events.
    pub fn write(&mut self, writer: &mut SegmentWriter, events: &[Event]) -> Result<()> {
        for event in events {
            match event {
                Event::Span(span) => {
                    self.lanes[span.lane.0 as usize] += 1;
                    writer.span(span)?;
                }
                Event::Iteration(iteration) => {
                    self.lanes[iteration.lane.0 as usize] += 1;
                    writer.iteration(iteration)?;
                }
                Event::Sample(sample) => writer.sample(sample)?,
                Event::Flush(open) => {
                    for (lane, emitted) in (0..).map(LaneId).zip(self.lanes) {
                        writer.lane_totals(&LaneTotals { lane, emitted, written: emitted, dropped: 0 });
                    }
                    writer.flush(open, self.totals())?;
                    continue;
                }
            }
            self.records += 1;
        }
        Ok(())
    }
}
