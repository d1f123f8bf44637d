//! Readings of counters in version 2. Their table stands in `v2.rs`.

use super::super::Decoder;
use super::super::sample::value;
use crate::encode::tag;
use crate::record::{CounterId, Sample};
use crate::varint::{ROOM, Room};
use crate::visit::Visit;

impl<V: Visit> Decoder<'_, '_, V> {
    /// Reads samples for as long as they follow each other. At most `left` are left of the block; returns how many were
    /// read, and what follows.
    #[inline]
    pub(super) fn v2_samples<'r>(&mut self, mut rest: &'r [u8], left: u32) -> Option<(u32, &'r [u8])> {
        let (counters, ids) = (self.states.counters.as_mut_slice(), self.ids.counters);
        let (mut time_ns, mut count) = (self.sample_ns, 0);
        while count < left {
            let room: &[u8; ROOM] = rest.first_chunk()?;
            let (tag, mut input) = (room[0], Room::behind_tag(room));
            if !(tag::SAMPLE..tag::SPAN).contains(&tag) {
                break;
            }
            let local = usize::try_from(input.small()?).ok()?;
            let (counter, last) = (CounterId(*ids.get(local)?), counters.get_mut(local)?);
            let since = if tag & tag::SAMPLE_LATE != 0 { input.eight(8) } else { input.eight(3) & 0xff_ffff };
            let value = value(tag, &mut input, last);
            time_ns = time_ns.wrapping_add(since.cast_signed());
            self.visit.sample(Sample { counter, time_ns, value });
            rest = rest.get(input.length..)?;
            count += 1;
        }
        self.sample_ns = time_ns;
        Some((count, rest))
    }
}
