//! Device times that come after their spans.

use dflash_timeline::record::{Awaited, DeviceTime, Iteration, Kind, Lane, LaneId, LaterTime, NameId, Span, Totals};
use dflash_timeline::{ReadOptions, SegmentWriter, Visit, read, read_with, visit};

use crate::support::{Run, SEGMENT};

const AT: i64 = 5_000_000_000;

fn span(name: NameId, lane: LaneId, number: u64) -> Span {
    let begin_ns = AT + 1_000 * number as i64;
    Span { name, lane, iteration: Some(number), index: None, depth: 0, begin_ns, duration_ns: 900, device: None }
}

fn time(lane: LaneId, number: u64) -> LaterTime {
    let begin_ns = AT + 1_000 * number as i64;
    LaterTime {
        lane,
        begin_ns,
        device: DeviceTime { begin_ns: begin_ns + 2_000_000_000, duration_ns: 40 + number, stream: None },
    }
}

/// What a visitor hears, in order: number of the span and its device time, or an iteration's number.
#[derive(Debug, Default, PartialEq)]
struct Heard(Vec<(u32, u64, Option<Option<u64>>)>);

impl Visit for Heard {
    fn span(&mut self, span: Span) {
        let device = span.device.map(|device| device.duration_ns);
        self.0.push((span.lane.0, span.iteration.unwrap(), Some(device)));
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.0.push((iteration.lane.0, iteration.number, None));
    }
}

fn begin(run: &Run) -> (SegmentWriter, NameId, [LaneId; 2]) {
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let name = writer.name("drafter.forward");
    let lanes =
        ["drafter:0", "loader"].map(|name| writer.lane(&Lane { name: name.into(), device: "cuda:0".into(), rank: 0 }));
    (writer, name, lanes)
}

fn step(writer: &mut SegmentWriter, name: NameId, lane: LaneId, number: u64) {
    let span = span(name, lane, number);
    writer.span(&span).unwrap();
    let (begin_ns, duration_ns) = (span.begin_ns, 950);
    let iteration = Iteration { lane, number, kind: Kind::Train, begin_ns, duration_ns, cpu_ns: None, tokens: None };
    writer.iteration(&iteration).unwrap();
}

#[test]
fn readers_put_span_and_time_together() {
    let run = Run::new();
    let (mut writer, name, [drafter, loader]) = begin(&run);
    for number in 0..3 {
        writer.awaited(&Awaited { lane: drafter, from_ns: Some(AT) });
        step(&mut writer, name, drafter, number);
        step(&mut writer, name, loader, number);
        writer.flush(&[], Totals::default()).unwrap();
    }
    // The second never comes.
    writer.later(drafter, &[time(drafter, 0), time(drafter, 2)]).unwrap();
    writer.awaited(&Awaited { lane: drafter, from_ns: None });
    writer.flush(&[], Totals::default()).unwrap();
    step(&mut writer, name, drafter, 3);
    let totals = writer.end(&[], Totals { emitted: 14, ..Totals::default() }).unwrap();
    assert_eq!(totals.written, 14, "a time is no record");

    let timeline = read(&run.dir).unwrap();
    assert!(timeline.health.problems.is_empty(), "{:?}", timeline.health);
    let device = |lane: LaneId| -> Vec<Option<DeviceTime>> {
        timeline.spans.iter().filter(|span| span.lane == lane).map(|span| span.device).collect()
    };
    assert_eq!(device(drafter), [Some(time(drafter, 0).device), None, Some(time(drafter, 2).device), None]);
    assert_eq!(device(loader), [None; 3]);

    let mut heard = Heard::default();
    visit(&run.dir, &ReadOptions::default(), &mut heard).unwrap();
    let of = |lane: u32| -> Vec<_> { heard.0.iter().filter(|one| one.0 == lane).map(|one| (one.1, one.2)).collect() };
    let spans = [Some(Some(40)), Some(None), Some(Some(42)), Some(None)];
    let in_order: Vec<_> = (0..4).zip(spans).flat_map(|(number, span)| [(number, span), (number, None)]).collect();
    assert_eq!(of(0), in_order);
    assert_eq!(of(1).len(), 6);
}

#[test]
fn who_asks_for_the_time_of_a_span_gets_its_later_device_time() {
    let run = Run::new();
    let (mut writer, name, [drafter, loader]) = begin(&run);
    writer.awaited(&Awaited { lane: drafter, from_ns: Some(AT) });
    step(&mut writer, name, drafter, 0);
    writer.flush(&[], Totals::default()).unwrap();
    step(&mut writer, name, loader, 9_000_000);
    writer.later(drafter, &[time(drafter, 0)]).unwrap();
    writer.end(&[], Totals::default()).unwrap();
    let options = ReadOptions { from_ns: Some(AT), to_ns: Some(AT + 1_000) };
    let timeline = read_with(&run.dir, &options).unwrap();
    assert_eq!(timeline.spans.iter().map(|span| span.device).collect::<Vec<_>>(), [Some(time(drafter, 0).device)]);
    let mut heard = Heard::default();
    visit(&run.dir, &options, &mut heard).unwrap();
    assert_eq!(heard.0, [(0, 0, Some(Some(40))), (0, 0, None)]);
}

#[test]
fn what_a_killed_writer_left_waiting_is_handed_over() {
    let run = Run::new();
    for attempt in 0..2 {
        let (mut writer, name, [drafter, _]) = begin(&run);
        writer.awaited(&Awaited { lane: drafter, from_ns: Some(AT) });
        step(&mut writer, name, drafter, attempt);
        writer.flush(&[], Totals::default()).unwrap();
        // No END: it was killed.
    }
    let mut heard = Heard::default();
    let timeline = visit(&run.dir, &ReadOptions::default(), &mut heard).unwrap();
    assert!(!timeline.health.ended);
    assert_eq!(heard.0, [(0, 0, Some(None)), (0, 0, None), (0, 1, Some(None)), (0, 1, None)]);
}
