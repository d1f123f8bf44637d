use proptest::prelude::*;

use super::{Packer, Texts};
use crate::varint::Input;

fn roundtrip(texts: &[String]) -> usize {
    let (mut packer, mut out) = (Packer::default(), Vec::new());
    texts.iter().for_each(|text| packer.pack(&mut out, text));
    let (mut found, mut input) = (Texts::default(), Input(&out));
    for text in texts {
        let place = found.unpack(&mut input).expect("it was packed");
        assert_eq!(found.text(&place), text);
    }
    assert!(input.0.is_empty());
    out.len()
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(texts in proptest::collection::vec("(ab|é|gpu\\.|x{200}|.)*[0-9]?", 0..30)) {
        roundtrip(&texts);
    }

    #[test]
    fn nonsense_is_refused_or_read(bytes: Vec<u8>) {
        let (mut found, mut input) = (Texts::default(), Input(&bytes));
        while let Some(place) = found.unpack(&mut input) {
            found.text(&place);
        }
    }
}

#[test]
fn alike_texts_are_small() {
    let texts: Vec<String> = (0..8).flat_map(|n| [format!("gpu.{n}.power"), "W".into()]).collect();
    assert_eq!(roundtrip(&texts), 13 + 3 + 7 * (4 + 1));
    assert_eq!(roundtrip(&["é".repeat(5000), "é".repeat(5000), String::new()]), 2 * (1 + 2 + 10_000) + 2);
}
