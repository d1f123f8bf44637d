//! Detail is bounded by `keep`, and what it deletes is told apart from what is lost.

use std::fs;
use std::time::{Duration, Instant};

use dflash_timeline::record::{Anchor, Expired, Lane, LaneId, NameId, Span, Totals};
use dflash_timeline::{
    Account, ReadOptions, SegmentWriter, StreamOptions, Tail, Timeline, Visit, read, read_with, visit,
};

use crate::support::Run;

fn options(keep_bytes: Option<u64>) -> StreamOptions {
    StreamOptions { segment_bytes: 2_000, keep_bytes, sync_every: None }
}

/// Writes blocks of ten spans, and says after each one what is on the disk.
fn write(run: &Run, options: &StreamOptions, blocks: u64, mut after: impl FnMut(u64)) -> Totals {
    let mut writer = SegmentWriter::with_options(&run.dir, 0, options).unwrap();
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let name = writer.name("a.step");
    writer.anchor(&Anchor { monotonic_ns: 1, realtime_ns: 1_700_000_000_000_000_000 });
    for block in 0..blocks {
        for n in 0..10 {
            writer.span(&span(name, lane, 10 * block + n)).unwrap();
        }
        writer.flush(&[], Totals { emitted: 10 * block + 10, ..Totals::default() }).unwrap();
        after(fs::read_dir(run.dir.timeline_dir()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum());
    }
    writer.end(&[], Totals { emitted: 10 * blocks, ..Totals::default() }).unwrap()
}

fn span(name: NameId, lane: LaneId, number: u64) -> Span {
    let (begin_ns, iteration, index, device) = (1_000 + 1_000 * number as i64, Some(number), None, None);
    Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns: 900, device }
}

fn whole(timeline: &Timeline) -> bool {
    timeline.health.ended && timeline.health.bad_blocks == 0 && timeline.health.problems.is_empty()
}

#[test]
fn old_segments_go_and_the_rest_adds_up() {
    let run = Run::new();
    let mut most = 0;
    let totals = write(&run, &options(Some(20_000)), 1_000, |bytes| most = bytes.max(most));
    assert!((10_000..=20_000).contains(&most), "{most} bytes");
    assert!(!run.segment(1).exists());
    let timeline = read(&run.dir).unwrap();
    assert!(whole(&timeline), "nothing is lost: {:?}", timeline.health);
    let Expired { records, segments, bytes } = timeline.expired;
    assert_eq!(timeline.totals, totals);
    assert_eq!((totals.emitted, totals.written, totals.dropped), (10_000, 10_000, 0));
    assert_eq!(records + timeline.spans.len() as u64, totals.written, "written = there + expired");
    assert!(segments > 50 && bytes > 50_000, "{:?}", timeline.expired);
    assert_eq!(timeline.detail_from_ns, Some(timeline.spans[0].begin_ns));
    assert_eq!(timeline.anchors.len(), 1, "what is left can be dated");
}

#[test]
fn only_its_own_segments_go() {
    let run = Run::new();
    write(&run, &options(None), 100, |_| {});
    fs::write(run.dir.timeline_dir().join("rank1-000001.dft"), "of another process").unwrap();
    let before = fs::read_dir(run.dir.timeline_dir()).unwrap().count();
    write(&run, &options(Some(8_000)), 500, |_| {});
    assert!((1..before).all(|number| run.segment(number as u32).exists()), "the first attempt's");
    assert!(run.dir.timeline_dir().join("rank1-000001.dft").exists());
    fs::remove_file(run.dir.timeline_dir().join("rank1-000001.dft")).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert!(whole(&timeline), "{:?}", timeline.health);
    assert_eq!((timeline.totals.written, timeline.expired.records + timeline.spans.len() as u64), (6_000, 6_000));
    // A third attempt does not take the numbers that were freed: it would stand before the second.
    write(&run, &options(Some(8_000)), 10, |_| {});
    let timeline = read(&run.dir).unwrap();
    assert!(whole(&timeline) && timeline.totals.written == 6_100, "{:?}", timeline.health);
}

#[test]
fn a_lost_segment_is_no_expired_one() {
    let run = Run::new();
    write(&run, &options(Some(20_000)), 1_000, |_| {});
    let mut left: Vec<_> = fs::read_dir(run.dir.timeline_dir()).unwrap().map(|e| e.unwrap().path()).collect();
    left.sort();
    fs::remove_file(&left[0]).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert!(timeline.health.bad_blocks > 0, "{:?}", timeline.health);
    assert!(timeline.health.problems[0].contains("are not all there"), "{:?}", timeline.health);
}

#[test]
fn following_begins_near_the_end_with_the_date_and_all_totals() {
    let run = Run::new();
    let big = StreamOptions { segment_bytes: 1 << 20, ..options(None) };
    write(&run, &options(None), 100, |_| {});
    write(&run, &big, 20_000, |_| {});
    let all = read(&run.dir).unwrap();
    let mut tail = Tail::open(&run.dir).unwrap();
    assert!(tail.poll().unwrap());
    let found = tail.timeline();
    assert!(found.spans.len() > 10_000 && found.spans.len() * 4 < all.spans.len() * 3, "{}", found.spans.len());
    assert_eq!(found.spans.last(), all.spans.last());
    assert_eq!((found.totals, found.anchors.first()), (all.totals, all.anchors.first()));
    assert!(whole(found), "{:?}", found.health);
    let mut tail = Tail::open(&run.dir).unwrap().from_start();
    tail.poll().unwrap();
    assert_eq!(tail.timeline(), &all);
}

#[test]
fn a_window_is_the_part_that_it_says() {
    let run = Run::new();
    let big = StreamOptions { segment_bytes: 3 << 20, ..options(None) };
    write(&run, &big, 20_000, |_| {});
    let all = read(&run.dir).unwrap();
    let (from_ns, to_ns) = (50_000_500, 50_200_950);
    let options = ReadOptions { from_ns: Some(from_ns), to_ns: Some(to_ns) };
    let some = read_with(&run.dir, &options).unwrap();
    let meets = |s: &&Span| s.begin_ns <= to_ns && s.begin_ns + 900 >= from_ns;
    assert_eq!(some.spans, all.spans.iter().filter(meets).copied().collect::<Vec<_>>());
    assert!(some.spans.len() == 201 && whole(&some), "{:?}", some.health);
    assert_eq!((some.totals, &some.anchors), (all.totals, &all.anchors));
    // Damage in what is passed by is nobody's business; damage in what is asked for is.
    let mut bytes = run.bytes();
    bytes[500_000] ^= 1;
    fs::write(run.segment(1), &bytes).unwrap();
    assert!(!read(&run.dir).unwrap().health.problems.is_empty());
    let found = read_with(&run.dir, &options).unwrap();
    assert_eq!(found.spans, some.spans);

    /// Counts what comes.
    #[derive(Default)]
    struct Count(usize, usize, usize);
    impl Visit for Count {
        fn texts(&mut self, timeline: &Timeline) {
            self.0 = timeline.names.len() + timeline.lanes.len();
        }
        fn span(&mut self, span: Span) {
            assert!(self.0 > 0 && span.name == NameId(0) && span.lane == LaneId(0));
            self.1 += 1;
        }
        fn account(&mut self, account: Account) {
            self.2 += usize::from(matches!(account, Account::Totals(_)));
        }
    }
    let mut count = Count::default();
    let rest = visit(&run.dir, &options, &mut count).unwrap();
    assert_eq!((count.0, count.1, rest.spans.len()), (2, 201, 0));
    assert!(count.2 > 1 && rest.totals == all.totals);
}

#[test]
fn syncing_is_another_threads_work() {
    let run = Run::new();
    let options = StreamOptions { sync_every: Some(Duration::ZERO), ..options(None) };
    let mut writer = SegmentWriter::with_options(&run.dir, 0, &options).unwrap();
    let begin = Instant::now();
    while writer.sync_stats().synced < 3 {
        writer.flush(&[], Totals::default()).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", writer.sync_stats());
    }
    let stats = writer.sync_stats();
    assert!(stats.problem.is_none() && stats.cpu_ns > 0, "{stats:?}");
}
