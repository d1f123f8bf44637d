//! Clocks of several hosts that drift apart, or step, while they record.

use std::collections::BTreeSet;

use dflash_timeline::record::{Counter, DeviceTime, Flow, FlowEnd, Lane, LaterTime, Sample, Span, Totals};
use dflash_timeline::{ReadOptions, SegmentWriter, Tail, Timeline, read, read_with};

use crate::clocks::{DAY, MS, heard};
use crate::support::{Run, SEGMENT};

/// Rank 1's clock is what rank 0's is less `lag_ns`, which the stream says each minute within `off_ns`.
struct Drifting {
    lag_ns: fn(i64) -> i64,
    off_ns: i64,
    minutes: i64,
}

const SECOND: i64 = 1_000 * MS;
/// What a rank hands over lasts this long.
const STEP: i64 = 100 * MS;

impl Drifting {
    /// A hand-off each second that both ranks see at the same moment, a span before it on rank 1; a block each.
    fn record(&self, run: &Run, seconds: std::ops::Range<i64>, writers: &mut Vec<SegmentWriter>) {
        if writers.is_empty() {
            writers.extend((0..2).map(|rank| SegmentWriter::create(&run.dir, rank, 16 << 10).unwrap()));
        }
        for (rank, writer) in (0..).zip(writers) {
            let own = |ns: i64| if rank == 0 { ns } else { ns - (self.lag_ns)(ns) };
            let lane = writer.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank });
            let [outer, inner] = ["drafter.step", "drafter.loss"].map(|name| writer.name(name));
            let mut counter = |name: &str| writer.counter(&Counter { name: name.into(), unit: "ns".into(), rank });
            let (offset, uncertainty) = (counter("clock.offset"), counter("clock.uncertainty"));
            for second in seconds.clone() {
                let ns = DAY + second * SECOND;
                if second % 60 == 1 {
                    let off = if (second / 60) % 2 == 0 { self.off_ns } else { -self.off_ns };
                    let value = if rank == 0 { 0 } else { (self.lag_ns)(ns) + off } as f64;
                    for (counter, value) in [(offset, value), (uncertainty, self.off_ns.abs() as f64)] {
                        writer.sample(&Sample { counter, time_ns: own(ns), value }).unwrap();
                    }
                }
                let iteration = Some(second as u64);
                for (name, depth, begin, end) in [(outer, 0, ns, ns + STEP), (inner, 1, ns + MS, ns + STEP)] {
                    let (begin_ns, duration_ns) = (own(begin), (own(end) - own(begin)) as u64);
                    let (index, device) = (None, None);
                    let span = Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device };
                    writer.span(&span).unwrap();
                }
                let end = if rank == 1 { FlowEnd::Put } else { FlowEnd::Take };
                writer.flow(&Flow { id: second as u64, end, lane, time_ns: own(ns + STEP) }).unwrap();
                // A device time that comes in the next block finds its span, whose begin has been moved as well.
                let late = |second: i64| own(DAY + second * SECOND + MS);
                if second > 0 {
                    let begin_ns = late(second - 1);
                    let device = DeviceTime { begin_ns: begin_ns + 50, duration_ns: 7, stream: None };
                    writer.later(lane, &[LaterTime { lane, begin_ns, device }]).unwrap();
                }
                writer.flush(&[], Totals::default()).unwrap();
            }
        }
    }

    fn whole(&self) -> Run {
        let (run, mut writers) = (Run::new(), Vec::new());
        self.record(&run, 0..60 * self.minutes, &mut writers);
        for writer in writers {
            writer.end(&[], Totals::default()).unwrap();
        }
        run
    }
}

/// How far the two ends of hand-offs are apart, at most, from a second on.
fn apart_ns(timeline: &Timeline, from_second: i64) -> u64 {
    let at = |end, id: &u64| timeline.flows.iter().find(|f| f.end == end && f.id == *id).map(|f| f.time_ns);
    let ids: Vec<u64> = timeline.flows.iter().map(|f| f.id).filter(|id| *id as i64 >= from_second).collect();
    let both = ids.iter().filter_map(|id| at(FlowEnd::Put, id).zip(at(FlowEnd::Take, id)));
    both.map(|(put, take)| put.abs_diff(take)).max().expect("there are hand-offs")
}

fn drifts(ns: i64) -> i64 {
    3 * DAY + (ns - DAY) / 50_000
}

#[test]
fn clocks_that_drift_apart_are_followed() {
    // 20 ppm: 12 ms after ten minutes.
    let drifting = Drifting { lag_ns: drifts, off_ns: 20_000, minutes: 10 };
    let run = drifting.whole();
    let timeline = read(&run.dir).unwrap();
    assert!(std::fs::read_dir(run.dir.timeline_dir()).unwrap().count() > 4, "several segments of a rank");
    // Between readings that are off by 20 µs; behind the last one 59 s of drift.
    assert_eq!(apart_ns(&timeline, 545), apart_ns(&timeline, 599));
    assert!(apart_ns(&timeline, 0) <= 20_000 + 59 * 20_000, "{}", apart_ns(&timeline, 0));
    let mut early = timeline.clone();
    early.flows.retain(|flow| (1..=541).contains(&flow.id));
    assert!(apart_ns(&early, 0) <= 25_000, "{}", apart_ns(&early, 0));
    // What lies within another still does, and every device time has found its span.
    let of_1: Vec<&Span> =
        timeline.spans.iter().filter(|span| timeline.lanes[span.lane.0 as usize].rank == 1).collect();
    let (outer, inner): (Vec<&Span>, Vec<&Span>) = of_1.into_iter().partition(|span| span.depth == 0);
    assert_eq!(outer.len(), 600);
    let end = |span: &Span| span.begin_ns + span.duration_ns as i64;
    assert!(outer.iter().zip(&inner).all(|(a, b)| a.begin_ns < b.begin_ns && end(a) == end(b)));
    assert_eq!(inner.iter().filter(|span| span.device.is_some()).count(), 599);
    assert!(inner.iter().filter_map(|s| Some((s.begin_ns, s.device?))).all(|(ns, d)| d.begin_ns - ns == 50));
    // A visitor hears the same, and a stretch of time is one of rank 0's clock.
    let whole = heard(&run.dir, &ReadOptions::default());
    assert_eq!(whole.0.len(), timeline.spans.len());
    // It was not told to wait for device times.
    let times: BTreeSet<_> = timeline.spans.iter().map(|s| (s.lane, s.begin_ns, s.duration_ns)).collect();
    assert!(whole.0.iter().all(|s| times.contains(&(s.lane, s.begin_ns, s.duration_ns))));
    let options = ReadOptions { from_ns: Some(DAY + 500 * SECOND), to_ns: Some(DAY + 510 * SECOND - MS) };
    let part = read_with(&run.dir, &options).unwrap();
    assert_eq!(part.spans.iter().filter(|span| span.depth == 0).count(), 20);
    assert!(part.flows.len() == 20 && apart_ns(&part, 500) <= 25_000);
}

#[test]
fn a_live_reader_follows_and_takes_nothing_back() {
    let drifting = Drifting { lag_ns: drifts, off_ns: 0, minutes: 10 };
    let (run, mut writers) = (Run::new(), Vec::new());
    let mut tail = Tail::open(&run.dir).unwrap();
    let mut before: Vec<Flow> = Vec::new();
    for second in (0..600).step_by(5) {
        drifting.record(&run, second..second + 5, &mut writers);
        tail.poll().unwrap();
        let flows = &tail.timeline().flows;
        assert!(before.iter().all(|flow| flows.contains(flow)), "{second}");
        before.clone_from(flows);
    }
    assert!(apart_ns(tail.timeline(), 0) <= 80 * 20_000, "{}", apart_ns(tail.timeline(), 0));
    let inner = tail.timeline().spans.iter().filter(|span| span.depth == 1);
    assert_eq!(inner.filter(|span| span.device.is_some()).count(), 2 * 599);
}

#[test]
fn an_offset_that_steps_is_followed_within_a_minute_and_time_does_not_go_back() {
    fn steps(ns: i64) -> i64 {
        if ns < DAY + 150 * SECOND { -3 * DAY } else { -3 * DAY - 200 * SECOND }
    }
    let run = Drifting { lag_ns: steps, off_ns: 0, minutes: 8 }.whole();
    let timeline = read(&run.dir).unwrap();
    let mut early = timeline.clone();
    early.flows.retain(|flow| flow.id <= 120);
    assert_eq!(apart_ns(&early, 0), 0, "until the last reading before the step");
    assert_eq!(apart_ns(&timeline, 430), 0);
    let puts = timeline.flows.iter().filter(|flow| flow.end == FlowEnd::Put).map(|flow| flow.id);
    assert!(puts.is_sorted());
}

#[test]
fn one_reading_alone_holds_for_all() {
    let drifting = Drifting { lag_ns: drifts, off_ns: 0, minutes: 1 };
    let timeline = read(&drifting.whole().dir).unwrap();
    let own = timeline.shifts[&1].first_ns();
    assert_eq!((own, timeline.shifts[&1].moved(7)), (3 * DAY + 20_000, 3 * DAY + 20_007));
    assert_eq!(apart_ns(&timeline, 0), 58 * 20_000 + 2_000);
}

#[test]
fn readings_right_after_another_are_passed_by_alike_by_all_readers() {
    // Rank 1 reads its clock each minute, which drifts; `oddly` also ten seconds later, and a second off.
    let record = |oddly: bool| {
        let run = Run::new();
        let mut writers = [0, 1].map(|rank| SegmentWriter::create(&run.dir, rank, 16 << 10).unwrap());
        for (rank, writer) in (0..).zip(&mut writers) {
            let lane = writer.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank });
            let counters = ["clock.offset", "clock.uncertainty"]
                .map(|name| writer.counter(&Counter { name: name.into(), unit: "ns".into(), rank }));
            for second in 0..600 {
                let time_ns = DAY + second * SECOND - i64::from(rank) * drifts(DAY + second * SECOND);
                let odd = oddly && second % 60 == 10;
                if rank == 1 && (second % 60 == 0 || odd) {
                    let value = (drifts(DAY + second * SECOND) + if odd { SECOND } else { 0 }) as f64;
                    for (counter, value) in counters.into_iter().zip([value, 0.0]) {
                        writer.sample(&Sample { counter, time_ns, value }).unwrap();
                    }
                }
                writer.flow(&Flow { id: second as u64, end: FlowEnd::Put, lane, time_ns }).unwrap();
                writer.flush(&[], Totals::default()).unwrap();
            }
        }
        for writer in writers {
            writer.end(&[], Totals::default()).unwrap();
        }
        run
    };
    let (plain, oddly) = (record(false), record(true));
    let whole = read(&oddly.dir).unwrap();
    assert_eq!(whole.flows, read(&plain.dir).unwrap().flows);
    assert_eq!(whole.shifts, read(&plain.dir).unwrap().shifts);
    let options = ReadOptions { from_ns: Some(DAY + 300 * SECOND), to_ns: Some(DAY + 310 * SECOND) };
    let part = read_with(&oddly.dir, &options).unwrap();
    assert!(part.flows.len() > 20 && part.flows.iter().all(|flow| whole.flows.contains(flow)));
    assert_eq!(part.shifts, whole.shifts);
}

/// What a thread has read so far: bytes.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_window_of_two_hosts_reads_little_more_than_that_of_one() {
    fn none(_: i64) -> i64 {
        0
    }
    let minutes = 40;
    let read_of = |lag_ns: fn(i64) -> i64| {
        let run = Run::new();
        let mut writers: Vec<_> = (0..2).map(|rank| SegmentWriter::create(&run.dir, rank, SEGMENT).unwrap()).collect();
        for second in 0..60 * minutes {
            Drifting { lag_ns, off_ns: 0, minutes }.record(&run, second..second + 1, &mut writers);
            for (rank, writer) in (0..).zip(&mut writers) {
                let noise = writer.counter(&Counter { name: "noise".into(), unit: "".into(), rank });
                let ns = DAY + second * SECOND;
                let time_ns = if rank == 0 { ns } else { ns - lag_ns(ns) };
                for at in 0..300_u64 {
                    // Numbers that do not pack.
                    let value = f64::from_bits((second as u64 * 300 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2);
                    writer.sample(&Sample { counter: noise, time_ns, value }).unwrap();
                }
            }
        }
        for writer in writers {
            writer.end(&[], Totals::default()).unwrap();
        }
        let options = ReadOptions { from_ns: Some(DAY + 600 * SECOND), to_ns: Some(DAY + 610 * SECOND) };
        let before = bytes_read();
        let seen = heard(&run.dir, &options).0;
        assert!(seen.len() >= 40, "{}", seen.len());
        bytes_read() - before
    };
    let (one, two) = (read_of(none), read_of(drifts));
    println!("{one} bytes are read of one host, {two} of two");
    assert!(two < one + one / 2, "{one} {two}");
}
