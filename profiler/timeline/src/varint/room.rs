//! Records of numbers in a room that is long enough for any, so that nothing is reserved or checked per number.

use super::{GOES_ON, Input, gather, spread, unzigzag};

/// Room for a record of numbers; no such record comes near it. Eight bytes from wherever a byte says lie in it.
pub(crate) const ROOM: usize = 264;
/// Where a number may begin, as a mask: eight bytes behind it always lie in the room.
const PLACES: usize = 127;

/// A record of numbers in the making, in a room that is long enough for any: nothing is reserved or checked per number.
pub(crate) struct Record<'a> {
    room: &'a mut [u8; ROOM],
    /// Bytes used.
    pub length: usize,
}

impl<'a> Record<'a> {
    /// Begins a record with a byte.
    #[inline]
    pub(crate) fn new(room: &'a mut [u8; ROOM], first: u8) -> Self {
        room[0] = first;
        Self { room, length: 1 }
    }

    #[inline]
    pub(crate) fn empty(room: &'a mut [u8; ROOM]) -> Self {
        Self { room, length: 0 }
    }

    /// Changes the first two bytes.
    #[inline]
    pub(crate) fn begin(&mut self, first: u16) {
        self.room[..2].copy_from_slice(&first.to_le_bytes());
    }

    /// Appends a byte.
    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.room[self.length & PLACES] = byte;
        self.length += 1;
    }

    /// Appends the lowest `length` bytes of a number, 8 at most.
    #[inline]
    pub(crate) fn fixed(&mut self, value: u64, length: usize) {
        let at = self.length & PLACES;
        self.room[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self.length += length;
    }

    /// Appends a number that mostly fits in one byte.
    #[inline]
    pub(crate) fn small(&mut self, value: u32) {
        if value < 0x80 { self.byte(value as u8) } else { self.number(u64::from(value)) }
    }

    /// Appends a number.
    #[inline]
    pub(crate) fn number(&mut self, value: u64) {
        if value >> 56 != 0 {
            self.length = put_long(self.room, self.length, value);
            return;
        }
        let bytes = (70 - (value | 1).leading_zeros() as usize) / 7;
        let goes_on = GOES_ON & !(u64::MAX << (8 * bytes - 8));
        let at = self.length & PLACES;
        self.room[at..at + 8].copy_from_slice(&(spread(value) | goes_on).to_le_bytes());
        self.length += bytes;
    }
}

/// Writes a number at `at`, and returns where it ends. By value, so that a [`Record`] can stay in registers.
#[cold]
fn put_long(room: &mut [u8; ROOM], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        room[at & PLACES] = value as u8 | 0x80;
        at += 1;
        value >>= 7;
    }
    room[at & PLACES] = value as u8;
    at + 1
}

/// The way back from a [`Record`]: reads in a room that is long enough for any record, so that nothing is checked per
/// number. What it reads of a record that is none may be anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    room: &'a [u8; ROOM],
    /// Bytes read.
    pub length: usize,
}

impl<'a> Room<'a> {
    /// Begins behind a record's tag.
    #[inline]
    pub(crate) fn behind_tag(room: &'a [u8; ROOM]) -> Self {
        Self { room, length: 1 }
    }

    /// Begins in the middle.
    #[inline]
    pub(crate) fn at(room: &'a [u8; ROOM], length: usize) -> Self {
        Self { room, length }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> u8 {
        let byte = self.room[self.length & PLACES];
        self.length += 1;
        byte
    }

    /// Eight bytes from the next one on, of which `length` are read.
    #[inline]
    pub(crate) fn eight(&mut self, length: usize) -> u64 {
        let at = self.length & PLACES;
        self.length += length;
        self.room[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
    }

    /// A number that mostly fits in one byte.
    #[inline]
    pub(crate) fn small(&mut self) -> Option<u64> {
        let byte = self.room[self.length & PLACES];
        if byte < 0x80 {
            self.length += 1;
            return Some(u64::from(byte));
        }
        self.number()
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let word = self.eight(0);
        let ends = !word & GOES_ON;
        if ends == 0 {
            let (value, length) = long(self.room, self.length)?;
            self.length = length;
            return Some(value);
        }
        self.length += (ends.trailing_zeros() as usize + 1) / 8;
        Some(gather(word & (ends ^ (ends - 1))))
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }
}

/// A number that stands at `at`, and where it ends. By value, so that a [`Room`] can stay in registers.
#[cold]
fn long(room: &[u8; ROOM], at: usize) -> Option<(u64, usize)> {
    let mut input = Input(room.get(at..)?);
    let value = input.slow()?;
    Some((value, ROOM - input.0.len()))
}
