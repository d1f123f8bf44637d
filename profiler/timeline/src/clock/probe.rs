//! What a rank's stream says of its clock.

use crate::assemble::Assembler;
use crate::decode::{PADDING, open};
use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::format::Header;
use crate::record::{CounterId, LaneId, Sample};
use crate::scan::Segment;
use crate::timeline::Timeline;
use crate::visit::Visit;

/// The counter that says it, nanoseconds to be added to get rank 0's time.
const OFFSET: &str = "clock.offset";
/// How far it may be off, nanoseconds.
const UNCERTAINTY: &str = "clock.uncertainty";
/// Clocks that differ by no more than this beyond what is uncertain are one clock, nanoseconds: ranks of one host.
const SAME_CLOCK_NS: f64 = 1e6;
/// A reading follows another after a minute; none is looked for before this, nanoseconds.
const APART_NS: i64 = 55_000_000_000;
/// So much of a segment is looked through: more than is recorded in a minute, after which it is said again.
const REACH: u64 = 64 << 20;

/// What a segment says first: what must be added, 0 if the clock is rank 0's; `None`: it does not say.
pub(super) fn said(segment: &mut Segment) -> Result<Option<i64>> {
    let (mut assembler, mut buffer, mut said) = (Assembler::default(), Vec::new(), Said::default());
    let path = segment.path.clone();
    while segment.offset() < REACH
        && let Some(batch) = segment.next(&mut buffer, None)?
    {
        assembler.show(&path, 0, &batch, None, &mut said);
        // A live stream may end between the two.
        if let (Some((_, offset)), Some(uncertainty)) = (said.offsets.first(), said.uncertainty_ns) {
            let another = offset.abs() > uncertainty + SAME_CLOCK_NS;
            return Ok(Some(if another { *offset as i64 } else { 0 }));
        }
    }
    Ok(None)
}

/// What a segment says from where its reading has come to: when, and what must be added then. Blocks without such a
/// reading are passed by, and those soon after the last one, which was at `heard_ns`, without a look at their texts.
pub(super) fn later(segment: &mut Segment, mut heard_ns: Option<i64>) -> Result<Vec<(i64, i64)>> {
    let (mut assembler, mut said) = (Assembler::default(), Said::default());
    let (mut buffer, mut reach) = (Vec::new(), Vec::new());
    let path = segment.path.clone();
    loop {
        let due_ns = heard_ns.map_or(i64::MIN, |ns| ns.saturating_add(APART_NS));
        segment.pass(|header| header.last_ns < due_ns, lacks)?;
        let batch = match segment.one(&mut buffer)? {
            None => segment.next(&mut reach, None)?,
            one => one,
        };
        let Some(batch) = batch else { break };
        assembler.show(&path, 0, &batch, None, &mut said);
        heard_ns = heard_ns.max(said.offsets.last().map(|(time_ns, _)| *time_ns));
    }
    Ok(said.offsets.into_iter().map(|(time_ns, offset)| (time_ns, offset as i64)).collect())
}

/// Whether a block has no reading, by its texts, which stand at its begin. `bytes` are some of its payload, and padding.
fn lacks(header: &Header, bytes: &[u8]) -> bool {
    let mut found = Dictionary::default();
    let Some(records) = open(header, bytes, &mut found) else { return false };
    let all = bytes.len() == header.length as usize + PADDING;
    let told = found.counters.iter().any(|(name, ..)| found.texts.text(name) == OFFSET);
    // Version 1 has texts anywhere. If nothing is left the texts go on behind these bytes.
    header.version > 1 && !told && (all || records.length() > PADDING)
}

/// Looks for readings of both counters.
#[derive(Default)]
struct Said {
    /// The counters of these names.
    ids: [Option<CounterId>; 2],
    /// When, and what.
    offsets: Vec<(i64, f64)>,
    /// The first one.
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
        if offset && sample.value.is_finite() {
            self.offsets.push((sample.time_ns, sample.value));
        } else if uncertainty {
            self.uncertainty_ns.get_or_insert(sample.value);
        }
    }
}
