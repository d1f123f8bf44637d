//! A stream as a training makes it is read as it was written, in that order.

use std::collections::BTreeMap;

use dflash_timeline::record::{Iteration, LaneId, NameId, Sample, Span, StreamId};
use dflash_timeline::{ReadOptions, SegmentWriter, Visit, visit};

use crate::stream::{self, Event};
use crate::support::{Run, SEGMENT};
use crate::write::Written;

/// Everything, one by one.
#[derive(Default)]
struct All(Vec<Event>);

impl Visit for All {
    fn span(&mut self, span: Span) {
        self.0.push(Event::Span(span));
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.0.push(Event::Iteration(iteration));
    }

    fn sample(&mut self, sample: Sample) {
        self.0.push(Event::Sample(sample));
    }
}

/// The writer's ids of the reader's.
#[derive(Default)]
struct Ids(BTreeMap<(&'static str, u32), u32>);

impl Ids {
    fn check(&mut self, sort: &'static str, found: u32, written: u32) {
        assert_eq!(*self.0.entry((sort, found)).or_insert(written), written, "{sort} {found}");
    }
}

#[test]
fn what_a_training_writes() {
    for device in [false, true] {
        let run = Run::new();
        let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
        let mut written = Written::default();
        stream::introduce(&mut writer);
        let events = &stream::events(device)[..30_000];
        written.write(&mut writer, events).unwrap();
        writer.end(&[], written.totals()).unwrap();
        let mut all = All::default();
        visit(&run.dir, &ReadOptions::default(), &mut all).unwrap();
        let mut ids = Ids::default();
        let records: Vec<&Event> = events.iter().filter(|event| !matches!(event, Event::Flush(_))).collect();
        assert_eq!(all.0.len(), records.len());
        for (found, written) in all.0.into_iter().zip(records) {
            match (found, written) {
                (Event::Span(mut found), Event::Span(written)) => {
                    ids.check("name", found.name.0, written.name.0);
                    ids.check("lane", found.lane.0, written.lane.0);
                    (found.name, found.lane) = (NameId(written.name.0), LaneId(written.lane.0));
                    let stream = written.device.and_then(|device| device.stream);
                    if let (Some(found), Some(StreamId(written))) = (&mut found.device, stream) {
                        ids.check("stream", found.stream.map_or(u32::MAX, |stream| stream.0), written);
                        found.stream = stream;
                    }
                    assert_eq!(found, *written);
                }
                (Event::Iteration(found), Event::Iteration(written)) => {
                    ids.check("lane", found.lane.0, written.lane.0);
                    assert_eq!(Iteration { lane: written.lane, ..found }, *written);
                }
                (Event::Sample(found), Event::Sample(written)) => {
                    ids.check("counter", found.counter.0, written.counter.0);
                    assert_eq!(Sample { counter: written.counter, ..found }, *written);
                }
                (found, written) => panic!("{found:?} for {written:?}"),
            }
        }
    }
}
