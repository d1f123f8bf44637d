//! Readings of counters. Their table stands in `encode.rs`.

use super::Decoder;
use crate::encode::sample::{LARGE, PARTS};
use crate::encode::tag;
use crate::record::{CounterId, Sample};
use crate::varint::{ROOM, Room, unzigzag};
use crate::visit::Visit;

/// Bytes of a sample's value by its tag, and which bits those are.
const VALUES: [(usize, u64); 8] = [
    (0, 0),
    (1, 0xff),
    (2, 0xffff),
    (3, 0xff_ffff),
    (4, 0xffff_ffff),
    (5, 0xff_ffff_ffff),
    (6, 0xffff_ffff_ffff),
    (8, u64::MAX),
];

/// The value of a sample with this tag. `last`: the counter's last one of each sort that is told by its difference.
#[inline]
pub(super) fn value(tag: u8, input: &mut Room<'_>, last: &mut [i64; 3]) -> f64 {
    let (length, mask) = VALUES[usize::from(tag & 7)];
    let number = input.eight(length) & mask;
    let sort = usize::from(tag >> 4 & 3);
    match last.get_mut(sort) {
        None => f64::from_bits(number),
        Some(last) => {
            *last = last.wrapping_add(unzigzag(number));
            *last as f64 / PARTS[sort]
        }
    }
}

impl<V: Visit> Decoder<'_, '_, V> {
    /// Reads samples for as long as they follow each other. Returns how many those were, and what follows them.
    #[inline]
    pub(super) fn samples<'r>(&mut self, tags: &[u8], mut rest: &'r [u8]) -> Option<(usize, &'r [u8])> {
        let (counters, ids) = (self.states.counters.as_mut_slice(), self.ids.counters);
        let (mut time_ns, mut count) = (self.sample_ns, 0);
        for tag in tags {
            if !(tag::SAMPLE..tag::SPAN).contains(tag) {
                break;
            }
            let room: &[u8; ROOM] = rest.first_chunk()?;
            let mut input = Room::at(room, 0);
            let first = input.eight(4);
            let (local, mut since) = (first as u32 & 0xff, first >> 8 & 0xff_ffff);
            let local = if local == LARGE { input.eight(4) as u32 } else { local } as usize;
            let (counter, last) = (CounterId(*ids.get(local)?), counters.get_mut(local)?);
            if tag & tag::SAMPLE_LATE != 0 {
                since = input.eight(8);
            }
            let value = value(*tag, &mut input, last);
            time_ns = time_ns.wrapping_add(since.cast_signed());
            rest = rest.get(input.length..)?;
            self.visit.sample(Sample { counter, time_ns, value });
            count += 1;
        }
        self.sample_ns = time_ns;
        Some((count, rest))
    }
}
