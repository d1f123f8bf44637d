//! The ranks of a run may be on several hosts, each with a monotonic clock of its own. A rank says in its stream how far
//! rank 0's is from its own: every reader gets its times on rank 0's clock, as if they had been recorded so.
//!
//! One figure holds for a whole attempt of a rank, the first that its stream says: what belongs together (a span and the
//! device time that comes after it) stays together. Clocks that drift apart afterwards are not followed.

use crate::assemble::Assembler;
use crate::error::Result;
use crate::format::Header;
use crate::listing::Listed;
use crate::record::{CounterId, LaneId, Sample};
use crate::scan::Segment;
use crate::tail::{Tail, open};
use crate::timeline::Timeline;
use crate::visit::Visit;

/// The counter that says it, nanoseconds to be added to get rank 0's time.
const OFFSET: &str = "clock.offset";
/// How far it may be off, nanoseconds.
const UNCERTAINTY: &str = "clock.uncertainty";
/// Clocks that differ by no more than this beyond what is uncertain are one clock, nanoseconds: ranks of one host.
const SAME_CLOCK_NS: f64 = 1e6;
/// So much of a segment is looked through: more than is recorded in a minute, after which it is said again.
const REACH: u64 = 64 << 20;
/// A segment that ends before this may be one that has only begun, bytes.
const YOUNG: u64 = 1 << 20;

impl Tail {
    /// What must be added to the times of a rank's segment that is about to be read.
    pub(crate) fn set_clock(&mut self, one: &Listed, segment: &mut Segment) -> Result<()> {
        if one.rank == 0 {
            return Ok(());
        }
        let Some(Header { stream, .. }) = segment.first_header()? else { return Ok(()) };
        let known = self.clocks.get(&(one.rank, stream)).copied();
        if let Some(shift_ns) = known {
            segment.shift_ns = shift_ns;
            return Ok(());
        }
        let Some(mut probe) = open(&one.path)? else { return Ok(()) };
        let found = said(&mut probe)?;
        if found.is_some() || probe.offset() >= YOUNG {
            let shift_ns = found.unwrap_or_default();
            self.clocks.insert((one.rank, stream), shift_ns);
            segment.shift_ns = shift_ns;
            if shift_ns != 0 {
                self.assembler.timeline.shifts.insert(one.rank, shift_ns);
            }
        }
        Ok(())
    }
}

/// What a segment says first: what must be added, 0 if the clock is rank 0's; `None`: it does not say.
fn said(segment: &mut Segment) -> Result<Option<i64>> {
    let (mut assembler, mut buffer, mut said) = (Assembler::default(), Vec::new(), Said::default());
    let path = segment.path.clone();
    while segment.offset() < REACH
        && let Some(batch) = segment.next(&mut buffer, None)?
    {
        assembler.show(&path, 0, &batch, None, &mut said);
        if let (Some(offset), uncertainty) = (said.offset_ns, said.uncertainty_ns.unwrap_or_default()) {
            let another = offset.abs() > uncertainty + SAME_CLOCK_NS;
            return Ok(Some(if another { offset as i64 } else { 0 }));
        }
    }
    Ok(None)
}

/// Looks for the first readings of both counters.
#[derive(Default)]
struct Said {
    /// The counters of these names.
    ids: [Option<CounterId>; 2],
    offset_ns: Option<f64>,
    uncertainty_ns: Option<f64>,
}

impl Visit for Said {
    fn texts(&mut self, timeline: &Timeline) {
        self.ids = [OFFSET, UNCERTAINTY].map(|name| {
            let place = timeline.counters.iter().position(|counter| counter.name == name)?;
            u32::try_from(place).ok().map(CounterId)
        });
    }

    fn wants(&self, _: LaneId) -> bool {
        false
    }

    fn sample(&mut self, sample: Sample) {
        let [offset, uncertainty] = self.ids.map(|id| id == Some(sample.counter));
        if offset {
            self.offset_ns.get_or_insert(sample.value);
        } else if uncertainty {
            self.uncertainty_ns.get_or_insert(sample.value);
        }
    }
}
