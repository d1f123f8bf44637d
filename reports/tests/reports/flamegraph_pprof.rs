//! pprof's profile, read back field by field.

use crate::changes::wall;
use crate::flamegraph_forms::{HOSTILE, hostile};
use crate::support::MS;
use dflash_reports::text::harmless;
use std::io::Read;

/// The fields of a message, by number: a varint's value, or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        match tag & 7 {
            0 => found.push((tag >> 3, varint(&mut bytes), &[][..])),
            2 => {
                let length = varint(&mut bytes) as usize;
                found.push((tag >> 3, 0, &bytes[..length]));
                bytes = &bytes[length..];
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

#[test]
fn a_pprof_profile_leads_back_to_the_stacks() {
    let graph = wall(&hostile());
    let mut bytes = Vec::new();
    graph.write_pprof(&mut bytes).unwrap();
    let mut profile = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut profile).unwrap();
    let profile = fields(&profile);
    let all = |number: u64| profile.iter().filter(move |field| field.0 == number);
    let strings: Vec<&str> = all(6).map(|field| std::str::from_utf8(field.2).unwrap()).collect();
    assert_eq!(strings[0], "");
    let kind = fields(all(1).next().unwrap().2);
    assert_eq!([strings[kind[0].1 as usize], strings[kind[1].1 as usize]], ["wall", "nanoseconds"]);
    let function =
        |id: u64| all(5).map(|f| fields(f.2)).find(|f| f[0].1 == id).map(|f| strings[f[1].1 as usize]).unwrap();
    let location = |id: u64| {
        let line = all(4).map(|l| fields(l.2)).find(|l| l[0].1 == id).map(|l| fields(l[1].2)[0].1).unwrap();
        function(line)
    };
    let mut read: Vec<(String, u64)> = Vec::new();
    for sample in all(2) {
        let sample = fields(sample.2);
        let packed = |bytes: &[u8]| {
            // A packed list is a message of bare varints: read it as one by giving each a tag.
            let mut tagged = vec![8];
            for byte in bytes {
                tagged.push(*byte);
                if *byte < 0x80 {
                    tagged.push(8);
                }
            }
            tagged.pop();
            fields(&tagged).iter().map(|field| field.1).collect::<Vec<_>>()
        };
        let mut stack: Vec<&str> = packed(sample[0].2).into_iter().map(location).collect();
        stack.reverse();
        read.push((stack.join("|"), packed(sample[1].2)[0]));
    }
    assert_eq!(read.iter().map(|(_, weight)| weight).sum::<u64>(), graph.total());
    let named = |name: &str| {
        let stack = format!("lane|{}", harmless(name));
        read.iter().any(|row| *row == (stack.clone(), MS))
    };
    assert!(HOSTILE.iter().all(|name| named(name)), "{read:?}");
}
