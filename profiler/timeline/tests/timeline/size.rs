//! What a stream takes up: counted to the byte, since it is the same each time.

use dflash_timeline::{SegmentWriter, read};

use crate::stream;
use crate::support::{Run, SEGMENT};
use crate::write::Written;

/// Bytes a span of everything in the file: samples, iterations, open spans, texts, headers.
fn bytes_a_span(device: bool) -> f64 {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let mut written = Written::default();
    stream::introduce(&mut writer);
    written.write(&mut writer, &stream::events(device)).unwrap();
    writer.flush(&[], written.totals()).unwrap();
    let (records, bytes) = (written.records, writer.bytes());
    writer.end(&[], written.totals()).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
    assert_eq!((timeline.spans.len() as u64, timeline.totals.written), (stream::SPANS, records));
    assert!(timeline.samples.len() as u64 > stream::SAMPLES - 100, "{} samples", timeline.samples.len());
    bytes as f64 / stream::SPANS as f64
}

#[test]
fn a_span_of_a_long_training() {
    let (host, device) = (bytes_a_span(false), bytes_a_span(true));
    assert!((11.25..11.75).contains(&host), "{host} bytes a span with host time");
    assert!((16.0..17.0).contains(&device), "{device} bytes a span with device time");
}
