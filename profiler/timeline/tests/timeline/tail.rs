//! Following a run gives what reading it gives.

use std::fs::{self, File};
use std::io::Write;

use dflash_timeline::record::{Lane, Span, Totals};
use dflash_timeline::{SegmentWriter, Tail, read};

use crate::support::{Run, SEGMENT, small};

#[test]
fn a_file_that_grows_byte_by_byte() {
    let run = Run::new();
    small(&run);
    let (bytes, whole) = (run.bytes(), read(&run.dir).unwrap());
    fs::remove_file(run.segment(1)).unwrap();
    let mut tail = Tail::open(&run.dir).unwrap();
    assert!(!tail.poll().unwrap(), "no file yet");
    let mut file = File::create(run.segment(1)).unwrap();
    let mut news = 0;
    for byte in bytes {
        assert!(!tail.timeline().health.ended);
        file.write_all(&[byte]).unwrap();
        news += u32::from(tail.poll().unwrap());
    }
    assert_eq!(news, 3, "once a block");
    assert_eq!(tail.timeline(), &whole);
    assert!(!tail.poll().unwrap());
}

#[test]
fn segments_follow_each_other_and_memory_is_bounded() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, 400).unwrap();
    let mut tail = Tail::open(&run.dir).unwrap().with_window(100);
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let name = writer.name("a.step");
    for number in 0..50_u64 {
        let (begin_ns, iteration, index, device) = (1000 + 10 * number as i64, Some(number), None, None);
        writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns: 10, device }).unwrap();
        writer.flush(&[], Totals { emitted: number + 1, ..Totals::default() }).unwrap();
        assert!(tail.poll().unwrap());
        let spans = &tail.timeline().spans;
        assert_eq!(spans.last().unwrap().iteration, Some(number));
        assert_eq!(spans.len() as u64, (number + 1).min(11), "what ended in the last 100 ns");
    }
    assert!(run.segment(5).exists());
    assert_eq!(tail.timeline().totals.written, 50, "totals are of the whole run");
    assert_eq!(tail.timeline().health.problems, Vec::<String>::new());
}

/// A reader that was stopped has much to catch up with: it forgets on the way, not at the end.
#[test]
fn catching_up_keeps_no_more_than_was_asked_for() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, 1 << 30).unwrap();
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let name = writer.name("a.step");
    let count = 1_000_000_u64;
    writer.flush(&[], Totals::default()).unwrap();
    let mut tail = Tail::open(&run.dir).unwrap();
    assert!(tail.poll().unwrap());
    for number in 0..count {
        let (begin_ns, iteration, index, device) = (10 * number as i64, Some(number), None, None);
        // Lengths that differ take their room in the file.
        let duration_ns = number * 7919 % 1_000_003 % 10;
        writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns, device }).unwrap();
        if number % 1000 == 0 {
            writer.flush(&[], Totals::default()).unwrap();
        }
    }
    writer.end(&[], Totals::default()).unwrap();
    let mut seen = Vec::new();
    let kept_ns = 10_000;
    tail.poll_keeping(|timeline| {
        seen.push(timeline.spans.len() as u64);
        kept_ns
    })
    .unwrap();
    assert!(seen.len() > 2, "in several parts: {seen:?}");
    assert!(seen.iter().all(|held| *held < count / 2), "{seen:?}");
    assert_eq!(tail.timeline().spans.last().unwrap().iteration, Some(count - 1));
    assert!(tail.timeline().spans.len() <= 1001, "what ended in the last 10 us");
}

#[test]
fn a_file_that_shrinks_or_vanishes_hurts_nobody() {
    let run = Run::new();
    small(&run);
    let mut tail = Tail::open(&run.dir).unwrap();
    tail.poll().unwrap();
    let before = tail.timeline().clone();
    File::options().write(true).open(run.segment(1)).unwrap().set_len(10).unwrap();
    tail.poll().unwrap();
    fs::remove_dir_all(run.dir.timeline_dir()).unwrap();
    assert!(!tail.poll().unwrap());
    assert!(!tail.poll().unwrap());
    let after = tail.timeline();
    assert_eq!((&after.spans, &after.samples, after.totals), (&before.spans, &before.samples, before.totals));
    let [shrunk, vanished] = after.health.problems.as_slice() else { panic!("{:?}", after.health.problems) };
    assert!(shrunk.contains("rank0-000001.dft: was cut from") && shrunk.contains("to 10 bytes"), "{shrunk}");
    assert!(vanished.contains("rank0-000001.dft: vanished while it was read"), "{vanished}");
    let nothing = read(&run.dir).unwrap();
    assert!(!nothing.health.ended && nothing.health.problems[0].contains("nothing was recorded"));
}

#[test]
fn two_ranks_are_one_timeline() {
    let run = Run::new();
    for rank in 0..2 {
        let mut writer = SegmentWriter::create(&run.dir, rank, SEGMENT).unwrap();
        let lane = writer.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank });
        let name = writer.name("drafter.loss");
        let (device, index, iteration) = (None, None, None);
        writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns: 5, duration_ns: 1, device }).unwrap();
        if rank == 0 {
            writer.end(&[], Totals { emitted: 1, ..Totals::default() }).unwrap();
        } else {
            writer.flush(&[], Totals { emitted: 1, ..Totals::default() }).unwrap();
        }
    }
    let timeline = read(&run.dir).unwrap();
    assert_eq!((timeline.names.len(), timeline.lanes.len(), timeline.spans.len()), (1, 2, 2));
    assert_eq!(timeline.totals.written, 2);
    assert!(!timeline.health.ended, "one of them has not ended");
}
