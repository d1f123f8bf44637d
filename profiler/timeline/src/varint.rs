//! Numbers of as many bytes as they need: LEB128, and zigzag for signed ones.
//!
//! The quick ways handle eight bytes at once: 56 bits are spread over them, or gathered from them, in three steps. Longer
//! numbers and the last bytes of a block take the slow way, byte by byte.

/// Top bits of eight bytes: "the number goes on".
const GOES_ON: u64 = 0x8080_8080_8080_8080;

/// 56 bits as eight groups of seven.
#[inline]
fn spread(value: u64) -> u64 {
    let halves = (value & 0x0fff_ffff) | ((value & 0x00ff_ffff_f000_0000) << 4);
    let quarters = (halves & 0x0000_3fff_0000_3fff) | ((halves & 0x0fff_c000_0fff_c000) << 2);
    (quarters & 0x007f_007f_007f_007f) | ((quarters & 0x3f80_3f80_3f80_3f80) << 1)
}

/// The way back; the top bit of each byte is ignored.
#[inline]
fn gather(word: u64) -> u64 {
    let quarters = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let halves = (quarters & 0x0000_3fff_0000_3fff) | ((quarters & 0x3fff_0000_3fff_0000) >> 2);
    (halves & 0x0fff_ffff) | ((halves & 0x0fff_ffff_0000_0000) >> 4)
}

/// A signed number as one whose size follows the magnitude.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The way back.
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Room for a record of numbers; no such record comes near it.
pub(crate) const ROOM: usize = 136;
/// Where a number may begin, as a mask: eight bytes behind it always lie in the room.
const PLACES: usize = 127;

/// A record of numbers in the making, in a room that is long enough for any: nothing is reserved or checked per number.
pub(crate) struct Record<'a> {
    room: &'a mut [u8; ROOM],
    /// Bytes used.
    pub length: usize,
}

impl<'a> Record<'a> {
    /// Begins a record with its tag.
    #[inline]
    pub(crate) fn new(room: &'a mut [u8; ROOM], tag: u8) -> Self {
        room[0] = tag;
        Self { room, length: 1 }
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
            return self.long(value);
        }
        let bytes = (70 - (value | 1).leading_zeros() as usize) / 7;
        let goes_on = GOES_ON & !(u64::MAX << (8 * bytes - 8));
        let at = self.length & PLACES;
        self.room[at..at + 8].copy_from_slice(&(spread(value) | goes_on).to_le_bytes());
        self.length += bytes;
    }

    /// Appends a signed number.
    #[inline]
    pub(crate) fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    #[cold]
    fn long(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }
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

/// Appends `value`, 7 bits a byte, the lowest first.
pub(crate) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a signed `value`; small magnitudes of either sign are short.
pub(crate) fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    put(bytes, zigzag(value));
}

/// A text longer than this is cut: a block must stay far below what readers take for damage.
const LONGEST_TEXT: usize = 1 << 20;

/// Appends a text, its length first.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads what the functions above wrote; `None` where the bytes end too soon or cannot be meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number that mostly fits in one byte.
    #[inline]
    pub(crate) fn small(&mut self) -> Option<u64> {
        match self.0.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.0 = rest;
                Some(u64::from(*first))
            }
            _ => self.number(),
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let Some(eight) = self.0.first_chunk::<8>() else { return self.slow() };
        let word = u64::from_le_bytes(*eight);
        let ends = !word & GOES_ON;
        if ends == 0 {
            return self.slow();
        }
        let bytes = (ends.trailing_zeros() as usize + 1) / 8;
        self.0 = self.0.get(bytes..)?;
        Some(gather(word & (ends ^ (ends - 1))))
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    #[cold]
    fn slow(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
