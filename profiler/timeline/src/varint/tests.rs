use proptest::prelude::*;

use super::{Input, ROOM, Record, put, put_signed, put_text};

/// Numbers of every length.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift)
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(number in number(), signed: i64, text: String) {
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

    #[test]
    fn the_quick_way_writes_and_reads_the_same(numbers in proptest::collection::vec(number(), 0..11), small: u32) {
        let (mut room, mut slow) = ([0xff; ROOM], vec![7]);
        let mut record = Record::new(&mut room, 7);
        for value in &numbers {
            record.number(*value);
            put(&mut slow, *value);
        }
        record.small(small);
        put(&mut slow, u64::from(small));
        let length = record.length;
        prop_assert_eq!(&room[..length], &slow);
        // Read among further bytes, and as the very last ones.
        for bytes in [&room[..], &slow[..]] {
            let mut input = Input(&bytes[1..]);
            for value in &numbers {
                prop_assert_eq!(input.number(), Some(*value));
            }
            prop_assert_eq!(input.small(), Some(u64::from(small)));
        }
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
