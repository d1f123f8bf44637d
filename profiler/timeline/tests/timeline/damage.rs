//! Damage is skipped and said; a part is never taken for the whole.

use std::fs;

use dflash_timeline::record::{Lane, Span, Totals};
use dflash_timeline::{Error, SegmentWriter, Timeline, read};

use crate::support::{Run, SEGMENT, small};

fn records(timeline: &Timeline) -> usize {
    let Timeline { spans, iterations, samples, flows, marks, stacks, .. } = timeline;
    stacks.len() + spans.len() + iterations.len() + samples.len() + flows.len() + marks.len()
}

/// Where the blocks begin, found by their magic.
fn starts(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"DFTB")).collect()
}

#[test]
fn cut_anywhere() {
    let run = Run::new();
    small(&run);
    let (bytes, whole) = (run.bytes(), read(&run.dir).unwrap());
    let starts = starts(&bytes);
    for length in 0..bytes.len() {
        let timeline = run.read_as(&bytes[..length]);
        assert!(!timeline.health.ended, "cut at {length}");
        assert!(records(&timeline) < records(&whole), "cut at {length}");
        let kept = starts[1..].iter().filter(|start| **start <= length).count();
        assert_eq!(timeline.iterations.len(), kept.min(2), "whole blocks before {length} are kept");
        if !starts.contains(&length) {
            let says_torn = |problem: &String| problem.contains("rank0-000001.dft: torn");
            assert!(timeline.health.problems.iter().any(says_torn), "{:?}", timeline.health);
        }
    }
}

#[test]
fn any_flipped_byte() {
    let run = Run::new();
    small(&run);
    let (bytes, whole) = (run.bytes(), read(&run.dir).unwrap());
    for at in 0..bytes.len() {
        for mask in (0..8).map(|bit| 1 << bit).chain([0xff]) {
            let mut flipped = bytes.clone();
            flipped[at] ^= mask;
            let timeline = run.read_as(&flipped);
            assert!(!timeline.health.problems.is_empty(), "byte {at} ^ {mask:#x}");
            assert!(timeline.health.skipped_bytes > 0 && records(&timeline) < records(&whole), "byte {at} ^ {mask:#x}");
            assert!(records(&timeline) >= 1, "the other blocks are kept");
        }
    }
}

#[test]
fn zeroes_in_the_middle() {
    let run = Run::new();
    small(&run);
    let mut bytes = run.bytes();
    let second = starts(&bytes)[1];
    bytes.splice(second..second, [0; 5000]);
    let timeline = run.read_as(&bytes);
    assert!(timeline.health.ended);
    assert_eq!((timeline.health.bad_blocks, timeline.health.skipped_bytes), (1, 5000));
    assert_eq!(records(&timeline), 15, "only zeroes are missing");
}

#[test]
fn a_block_that_vanished() {
    let run = Run::new();
    small(&run);
    let mut bytes = run.bytes();
    let starts = starts(&bytes);
    bytes.drain(starts[1]..starts[2]);
    let timeline = run.read_as(&bytes);
    assert_eq!((timeline.health.bad_blocks, timeline.iterations.len()), (1, 1));
    assert!(timeline.health.problems[0].contains("blocks 1 to 1 are not all there"), "{:?}", timeline.health);
}

#[test]
fn a_segment_that_vanished() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, 1).unwrap();
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let name = writer.name("a.step");
    let (device, index, iteration) = (None, None, None);
    for begin_ns in 0..4 {
        writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns: 1, device }).unwrap();
        writer.flush(&[], Totals::default()).unwrap();
    }
    writer.end(&[], Totals { emitted: 4, ..Totals::default() }).unwrap();
    assert!(read(&run.dir).unwrap().health.problems.is_empty());
    fs::remove_file(run.segment(2)).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert_eq!((timeline.spans.len(), timeline.health.bad_blocks), (3, 1));
    fs::remove_file(run.segment(1)).unwrap();
    let problems = read(&run.dir).unwrap().health.problems;
    assert!(problems[0].contains("blocks 0 to 1 are not all there"), "no `keep` has deleted it: {problems:?}");
}

#[test]
fn a_newer_file_says_update() {
    let run = Run::new();
    small(&run);
    let mut bytes = run.bytes();
    bytes[4] = 4;
    // A sound block of a newer version, not a damaged one: its checksum holds.
    let payload = bytes[48..starts(&bytes)[1]].to_vec();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..44]), &payload);
    bytes[44..48].copy_from_slice(&crc.to_le_bytes());
    fs::write(run.segment(1), bytes).unwrap();
    let error = read(&run.dir).unwrap_err();
    assert!(matches!(error, Error::TooNew { version: 4, known: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("update dflash"), "{error}");
}

#[test]
fn names_that_are_trouble_elsewhere() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let texts = ["", "a;b c\n\u{1b}[31m\"1", "DFTB", &"é".repeat(5000), &"x".repeat(3 << 20)];
    let lane = writer.lane(&Lane { name: "a\0b".into(), device: "DFTB".into(), rank: 9 });
    for text in texts {
        let name = writer.name(text);
        let (device, index, iteration) = (None, None, None);
        let span = Span { name, lane, iteration, index, depth: 255, begin_ns: 1, duration_ns: 1, device };
        writer.span(&span).unwrap();
    }
    writer.end(&[], Totals::default()).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
    assert_eq!(timeline.names[..4], texts[..4]);
    assert_eq!(timeline.names[4].len(), 1 << 20, "cut, so that a block stays readable");
}

#[test]
fn a_sound_block_with_an_unknown_record_says_update() {
    let run = Run::new();
    small(&run);
    let mut bytes = run.bytes();
    let starts = starts(&bytes);
    // One more record, of a kind that no version has written yet, at the end of the second block.
    let (begin, mut end) = (starts[1], starts[2]);
    bytes.insert(end, 0x3f);
    end += 1;
    for at in [16, 20, 24] {
        let number = u32::from_le_bytes(bytes[begin + at..begin + at + 4].try_into().unwrap()) + 1;
        bytes[begin + at..begin + at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[begin..begin + 44]), &bytes[begin + 48..end]);
    bytes[begin + 44..begin + 48].copy_from_slice(&crc.to_le_bytes());
    let timeline = run.read_as(&bytes);
    let problems = &timeline.health.problems;
    assert!(problems[0].contains("does not know") && problems[0].contains("update dflash"), "{problems:?}");
    assert_eq!((problems.len(), timeline.health.bad_blocks, timeline.iterations.len()), (1, 1, 1));
    assert!(timeline.health.ended, "the other blocks are kept, and nothing of this one");
}
