//! Readings of counters. Their bytes: the table in `encode.rs`.

use super::{Encoder, room, tag};
use crate::record::{CounterId, Sample};
use crate::varint::{ROOM, Record, zigzag};

/// Values that are no number of something.
const FLOAT: usize = 3;
/// What a value is multiplied with to be a number of ones, thousandths, 512s, and the way back.
const TIMES: [f64; FLOAT] = [1.0, 1e3, 1.0 / 512.0];
const BACK: [f64; FLOAT] = [1.0, 1e-3, 512.0];
/// To round by: added to a number below 2^50 it leaves no place behind the point, and the number in the lowest bits.
const ROUND: f64 = 1.5 * (1_u64 << 52) as f64;
const MOST: f64 = (1_u64 << 50) as f64;
/// What a number is to be divided by, by its sort: a quotient that is a power of two is exact.
pub(crate) const PARTS: [f64; FLOAT] = [1.0, 1e3, 1.0 / 512.0];
/// The first byte of a sample whose counter does not fit there.
pub(crate) const LARGE: u32 = 0xff;

/// What a block knows of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    /// Last number of each sort.
    last: [i64; FLOAT],
    /// The sort of its last value.
    sort: usize,
}

impl Encoder {
    #[inline]
    pub(crate) fn sample(&mut self, sample: &Sample, counter: CounterId) {
        self.make_room(ROOM);
        let Some(known) = self.counters.get_mut(counter.0 as usize) else { return };
        let number = exact(sample.value, known.sort).filter(|number| is_told_well(*number, known.sort));
        let (sort, number) = number.map_or_else(|| sorted(sample.value), |number| (known.sort, number));
        known.sort = sort;
        let value = match known.last.get_mut(sort) {
            Some(last) => zigzag(number - std::mem::replace(last, number)),
            None => sample.value.to_bits(),
        };
        let since = sample.time_ns.wrapping_sub(self.sample_ns).cast_unsigned();
        let late = since >= 1 << 24;
        let bytes = 8 - value.leading_zeros() as usize / 8;
        let (code, bytes) = if bytes > 6 || sort == FLOAT { (7, 8) } else { (bytes, bytes) };
        let tag = tag::SAMPLE | (sort << 4 | code) as u8 | (u8::from(late) * tag::SAMPLE_LATE);
        let mut record = Record::empty(room(&mut self.bytes, self.used));
        record.fixed(u64::from(counter.0.min(LARGE)) | since << 8, 4);
        if counter.0 >= LARGE {
            record.fixed(u64::from(counter.0), 4);
        }
        if late {
            record.fixed(since, 8);
        }
        record.fixed(value, bytes);
        let length = record.length;
        self.sample_ns = sample.time_ns;
        self.seen(sample.time_ns, 0);
        self.took(tag, length);
    }
}

/// How many of a sort a value is, if it is exactly so many and a varint holds that well (so not -0.0, NaN or beyond 2^50).
#[inline]
fn exact(value: f64, sort: usize) -> Option<i64> {
    let rounded = value * TIMES.get(sort)? + ROUND;
    let number = rounded - ROUND;
    // Dividing takes long.
    let same = if sort == 1 { number / PARTS[1] } else { number * BACK.get(sort)? };
    let fits = same.to_bits() == value.to_bits() && number.abs() < MOST;
    fits.then(|| rounded.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed())
}

/// Whether a number of ones is better told as one of 512s.
#[inline]
fn is_512s(number: i64) -> bool {
    number % 512 == 0 && number != 0
}

/// Whether a number is not better told by another sort. Which sort comes next nobody can guess, so it is one question for
/// all of them.
#[inline]
fn is_told_well(number: i64, sort: usize) -> bool {
    (number % 512) | sort as i64 | i64::from(number == 0) != 0
}

/// What a value counts: ones, thousandths, 512s; and how many. Else it is a float.
#[cold]
fn sorted(value: f64) -> (usize, i64) {
    let sort = match exact(value, 0) {
        Some(number) if is_512s(number) => 2,
        Some(_) => 0,
        None => 1,
    };
    exact(value, sort).map_or((FLOAT, 0), |number| (sort, number))
}
