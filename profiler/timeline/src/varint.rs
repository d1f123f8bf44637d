//! Numbers of as many bytes as they need: LEB128, and zigzag for signed ones.

/// Appends `value`, 7 bits a byte, the lowest first.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a signed `value`; small magnitudes of either sign are short.
#[inline]
pub(crate) fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    put(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
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

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
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

    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Input, put, put_signed, put_text};

    proptest! {
        #[test]
        fn what_goes_in_comes_out(number: u64, signed: i64, text: String) {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_signed(&mut bytes, signed);
            put_text(&mut bytes, &text);
            let mut input = Input(&bytes);
            prop_assert_eq!(input.number(), Some(number));
            prop_assert_eq!(input.signed(), Some(signed));
            prop_assert_eq!(input.text(), Some(text.as_str()));
            prop_assert_eq!(input.byte(), None);
        }
    }

    #[test]
    fn sizes() {
        for (value, size) in [(0, 1), (127, 1), (128, 2), (u64::from(u32::MAX), 5), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len(), size);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Input(&[0x80]).number(), None);
        assert_eq!(Input(&[0xff; 11]).number(), None);
        assert_eq!(Input(&[5, b'a']).text(), None);
        assert_eq!(Input(&[1, 0xff]).text(), None);
    }
}
