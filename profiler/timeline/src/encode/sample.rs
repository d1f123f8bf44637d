//! Readings of counters. Their bytes: the table in `encode.rs`.

use super::{Encoder, room, tag};
use crate::record::{CounterId, Sample};
use crate::varint::{Record, zigzag};

/// Values that are no number of something.
const FLOAT: usize = 3;

impl Encoder {
    #[inline]
    pub(crate) fn sample(&mut self, sample: &Sample, counter: CounterId) {
        let Some(last) = self.counters.get_mut(counter.0 as usize) else { return };
        let (sort, number) = sorted(sample.value);
        let value = match last.get_mut(sort) {
            Some(last) => zigzag(number - std::mem::replace(last, number)),
            None => sample.value.to_bits(),
        };
        let since = sample.time_ns.wrapping_sub(self.sample_ns).cast_unsigned();
        let late = since >= 1 << 24;
        let bytes = if sort == FLOAT { 8 } else { 8 - value.leading_zeros() as usize / 8 };
        let (code, bytes) = if bytes > 6 { (7, 8) } else { (bytes, bytes) };
        let tag = tag::SAMPLE | (sort << 4 | code) as u8 | (u8::from(late) * tag::SAMPLE_LATE);
        let mut record = Record::new(room(&mut self.bytes, self.used), tag);
        record.small(counter.0);
        record.fixed(since, if late { 8 } else { 3 });
        record.fixed(value, bytes);
        let length = record.length;
        self.sample_ns = sample.time_ns;
        self.seen(sample.time_ns, 0);
        self.took(length);
    }
}

/// What a value counts: ones, thousandths, 512s; and how many, if it is exactly so many and a varint holds that well (so not
/// -0.0, NaN or beyond 2^53). Else it is a float.
#[inline]
fn sorted(value: f64) -> (usize, i64) {
    let ones = value as i64;
    if (ones as f64).to_bits() == value.to_bits() && ones.unsigned_abs() < 1 << 53 {
        return if ones % 512 == 0 && ones != 0 { (2, ones / 512) } else { (0, ones) };
    }
    // Rounded by hand: a call of `round` takes as long as the rest. What it rounds otherwise is not exact.
    let thousandths = (value * 1e3 + 0.5_f64.copysign(value)) as i64;
    let exact = (thousandths as f64 / 1e3).to_bits() == value.to_bits() && thousandths.unsigned_abs() < 1 << 50;
    if exact { (1, thousandths) } else { (FLOAT, 0) }
}
