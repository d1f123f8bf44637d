//! Who visits records knows what their ids stand for when they come.

use dflash_timeline::record::{DeviceTime, Lane, Span, Stream, StreamId, Totals};
use dflash_timeline::{ReadOptions, SegmentWriter, Timeline, Visit, visit};

use crate::support::{Run, SEGMENT};

/// Counts the spans whose stream is known, and the others.
#[derive(Default)]
struct Streams {
    known: usize,
    spans: [usize; 2],
}

impl Visit for Streams {
    fn texts(&mut self, timeline: &Timeline) {
        self.known = timeline.streams.len();
    }

    fn span(&mut self, span: Span) {
        let known = span.device.and_then(|device| device.stream).is_some_and(|StreamId(id)| (id as usize) < self.known);
        self.spans[usize::from(known)] += 1;
    }
}

/// A stream that nothing else was new with was never told: reports took all such streams of a lane for one.
#[test]
fn a_stream_that_comes_late_and_alone_is_told() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let name = writer.name("drafter.forward");
    let lane = writer.lane(&Lane { name: "drafter:0".into(), device: "cuda:0".into(), rank: 0 });
    let mut number = 0;
    let mut write = |writer: &mut SegmentWriter, stream| {
        let (begin_ns, duration_ns) = (number * 1_000_000, 900_000);
        let device = Some(DeviceTime { begin_ns, duration_ns, stream: Some(stream) });
        let (index, depth, iteration) = (None, 0, Some(number as u64));
        writer.span(&Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device }).unwrap();
        number += 1;
    };
    for stream in [7, 8, 9] {
        let stream = writer.stream(&Stream { device: "cuda:0".into(), number: stream, rank: 0 });
        write(&mut writer, stream);
        // More than a reader takes at once, so that the next stream comes in a batch of its own.
        let bytes = || std::fs::metadata(run.dir.timeline_dir().join("rank0-000001.dft")).unwrap().len();
        let (before, batch) = (bytes(), std::thread::available_parallelism().unwrap().get() as u64 * (256 << 10));
        while bytes() < before + 2 * batch {
            for _ in 0..10_000 {
                write(&mut writer, stream);
            }
            writer.flush(&[], Totals::default()).unwrap();
        }
    }
    writer.end(&[], Totals::default()).unwrap();
    let mut streams = Streams::default();
    visit(&run.dir, &ReadOptions::default(), &mut streams).unwrap();
    assert_eq!(streams.known, 3);
    assert_eq!(streams.spans, [0, number as usize]);
}
