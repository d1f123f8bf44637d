//! Texts of a block, packed: most differ from another one in a character or two (`gpu.0.power`, `gpu.1.power`).
//!
//! A text is a number, then what it asks for:
//!
//! | number | what follows |
//! |---|---|
//! | 0 | length, bytes |
//! | odd, 2n+1 | nothing: it is the n-th text before it |
//! | even, 2n | a byte with the lengths of what it shares with the n-th text before it: begin in the upper half, end in the lower half; then length and bytes of what stands between |
//!
//! Only texts of up to 255 bytes are referred to, so that a few bytes cannot ask for much memory.

use std::ops::Range;

use crate::varint::{Input, put, put_text};

/// Longest text that is referred to.
const LONGEST: usize = 255;
/// Most bytes that are shared at each end.
const SHARED: usize = 15;
/// Shares below this do not pay.
const WORTH: usize = 3;
/// Places in the table of recent texts, a power of two.
const PLACES: usize = 64;

/// Texts one after the other, by number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(begin..end)
    }

    /// The text at a place that `unpack` returned.
    pub(crate) fn text(&self, place: &Range<usize>) -> &str {
        std::str::from_utf8(self.bytes(place)).unwrap_or("?")
    }

    /// The same as bytes.
    pub(crate) fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Forgets all but the first texts.
    pub(crate) fn truncate(&mut self, texts: usize) {
        self.ends.truncate(texts);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    fn close(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Reads a text as it stands in version 1: length and bytes.
    pub(crate) fn plain(&mut self, input: &mut Input<'_>) -> Option<Range<usize>> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(input.text()?.as_bytes());
        self.close();
        Some(begin..self.bytes.len())
    }

    /// Reads a packed text, and returns where it lies.
    pub(crate) fn unpack(&mut self, input: &mut Input<'_>) -> Option<Range<usize>> {
        let head = input.small()?;
        if head == 0 {
            return self.plain(input);
        }
        let (back, begin) = (usize::try_from(head / 2).ok()?, self.bytes.len());
        let number = self.ends.len().checked_sub(back)?;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        if end - start > LONGEST {
            return None;
        }
        if head % 2 == 1 {
            self.bytes.extend_from_within(start..end);
        } else {
            let shared = usize::from(input.byte()?);
            let (first, last) = (shared / 16, shared % 16);
            if first + last > end - start {
                return None;
            }
            let length = usize::try_from(input.small()?).ok()?;
            self.bytes.extend_from_within(start..start + first);
            self.bytes.extend_from_slice(input.bytes(length)?);
            self.bytes.extend_from_within(end - last..end);
        }
        self.close();
        std::str::from_utf8(&self.bytes[begin..]).ok()?;
        Some(begin..self.bytes.len())
    }
}

/// Packs texts.
#[derive(Debug)]
pub(crate) struct Packer {
    texts: Texts,
    /// By the first and by the last bytes: the number of the last text that began or ended so, plus one.
    recent: [[u16; PLACES]; 2],
}

impl Default for Packer {
    fn default() -> Self {
        Self { texts: Texts::default(), recent: [[0; PLACES]; 2] }
    }
}

impl Packer {
    /// Appends a text to `out`.
    pub(crate) fn pack(&mut self, out: &mut Vec<u8>, text: &str) {
        let (bytes, number) = (text.as_bytes(), self.texts.ends.len());
        let places = places(bytes);
        let short = bytes.len() <= LONGEST;
        let mut best = Shared::default();
        for (recent, place) in self.recent.iter().zip(places).filter(|_| short) {
            let like = usize::from(recent[place]).checked_sub(1);
            if let Some((like, other)) = like.and_then(|like| Some((like, self.texts.get(like)?))) {
                let shared = Shared::of(bytes, other, number - like);
                best = if shared.pays() > best.pays() { shared } else { best };
            }
        }
        best.write(out, text);
        if short && number < usize::from(u16::MAX) {
            self.recent.iter_mut().zip(places).for_each(|(recent, place)| recent[place] = number as u16 + 1);
            self.texts.bytes.extend_from_slice(bytes);
        }
        // A longer one has its number, too, but is not kept.
        self.texts.close();
    }

    /// Where it stands, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.texts.bytes.len(), texts: self.texts.ends.len(), recent: self.recent }
    }

    /// Forgets what came after the mark.
    pub(crate) fn restore(&mut self, mark: &Mark) {
        self.texts.bytes.truncate(mark.bytes);
        self.texts.ends.truncate(mark.texts);
        self.recent = mark.recent;
    }
}

/// How far a packer had come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    texts: usize,
    recent: [[u16; PLACES]; 2],
}

impl Default for Mark {
    fn default() -> Self {
        Self { bytes: 0, texts: 0, recent: [[0; PLACES]; 2] }
    }
}

/// What a text shares with the one so many before it.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    back: usize,
    first: usize,
    last: usize,
    /// They are the same.
    whole: bool,
}

impl Shared {
    fn of(bytes: &[u8], other: &[u8], back: usize) -> Self {
        let most = bytes.len().min(other.len());
        let same = |(a, b): &(&u8, &u8)| a == b;
        let first = bytes.iter().zip(other).take(most.min(SHARED)).take_while(same).count();
        let last = bytes.iter().rev().zip(other.iter().rev()).take((most - first).min(SHARED)).take_while(same).count();
        Self { back, first, last, whole: bytes == other }
    }

    /// Bytes that need not be written.
    fn pays(&self) -> usize {
        if self.whole { usize::MAX } else { self.first + self.last }
    }

    fn write(&self, out: &mut Vec<u8>, text: &str) {
        let bytes = text.as_bytes();
        if self.whole {
            put(out, 2 * self.back as u64 + 1);
        } else if self.pays() < WORTH {
            put(out, 0);
            put_text(out, text);
        } else {
            put(out, 2 * self.back as u64);
            out.push((self.first * 16 + self.last) as u8);
            let between = &bytes[self.first..bytes.len() - self.last];
            put(out, between.len() as u64);
            out.extend_from_slice(between);
        }
    }
}

/// Where texts with this begin, and with this end, stand in the tables.
fn places(bytes: &[u8]) -> [usize; 2] {
    let four = |found: &[u8]| {
        let mut four = [0; 4];
        four.iter_mut().zip(found).for_each(|(place, byte)| *place = *byte);
        (u32::from_le_bytes(four).wrapping_mul(0x9e37_79b1) >> 26) as usize % PLACES
    };
    [four(bytes), four(&bytes[bytes.len().saturating_sub(4)..])]
}

#[cfg(test)]
mod tests;
