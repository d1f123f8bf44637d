//! Protocol buffers, written by hand: the few wire types that a trace and a profile need.
//!
//! A field is its number and wire type in one varint, then its value: a varint (0), eight bytes (1), or bytes with their
//! length before them (2): texts and messages.

/// Appends the fields of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(pub Vec<u8>);

impl Message {
    /// A whole number, a boolean or an enum.
    #[inline]
    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// A signed whole number (`int64`, not zigzag).
    #[inline]
    pub(crate) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// A `double`.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A `fixed64`.
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A text.
    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Bytes, or a message that is already written.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message, written in place: room for a short length is left, and made larger for the few that need it.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.varint(u64::from(field) << 3 | 2);
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let mut length = (self.0.len() - at - 1) as u64;
        if length < 0x80 {
            self.0[at] = length as u8;
            return;
        }
        let mut bytes = Vec::with_capacity(10);
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        self.0.splice(at..=at, bytes);
    }

    /// Whole numbers in one field, packed.
    pub(crate) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        self.message(field, |packed| values.into_iter().for_each(|value| packed.varint(value)));
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn the_bytes_of_the_encoding_guide() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.uint(1, 150));
        message.int(4, -1);
        message.packed(6, [3, 270, 86_942]);
        let expected = [
            &[0x08, 0x96, 0x01][..],
            b"\x12\x07testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
            &[0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
        ];
        assert_eq!(message.0, expected.concat());
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        let text = "x".repeat(300);
        let (mut inside, mut whole) = (Message::default(), Message::default());
        inside.text(1, &text);
        inside.uint(2, 7);
        whole.bytes(9, &inside.0);
        let mut in_place = Message::default();
        in_place.message(9, |message| {
            message.text(1, &text);
            message.uint(2, 7);
        });
        assert_eq!(in_place.0, whole.0);
    }
}
