//! Numbers of as many bytes as they need: LEB128, and zigzag for signed ones.
//!
//! The quick ways handle eight bytes at once: 56 bits are spread over them, or gathered from them, in three steps. Longer
//! numbers and the last bytes of a block take the slow way, byte by byte.

mod room;

pub(crate) use self::room::{ROOM, Record, Room};

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
