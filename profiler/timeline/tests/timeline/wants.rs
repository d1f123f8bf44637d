//! A reader that says which lanes it wants gets all of theirs, and little of the others.

use dflash_timeline::record::{Iteration, LaneId, Span};
use dflash_timeline::{ReadOptions, SegmentWriter, Visit, read, visit};

use crate::stream;
use crate::support::{Run, SEGMENT};
use crate::write::Written;

const WANTED: LaneId = LaneId(3);

/// Takes the spans of one lane, and counts the others and the iterations.
#[derive(Default)]
struct One {
    spans: Vec<Span>,
    others: usize,
    iterations: usize,
}

impl Visit for One {
    fn wants(&self, lane: LaneId) -> bool {
        lane == WANTED
    }

    fn span(&mut self, span: Span) {
        if span.lane == WANTED { self.spans.push(span) } else { self.others += 1 }
    }

    fn iteration(&mut self, _: Iteration) {
        self.iterations += 1;
    }
}

#[test]
fn spans_of_other_lanes_are_passed_by() {
    for device in [false, true] {
        let run = Run::new();
        let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
        let mut written = Written::default();
        stream::introduce(&mut writer);
        written.write(&mut writer, &stream::events(device)[..40_000]).unwrap();
        writer.end(&[], written.totals()).unwrap();
        let all = read(&run.dir).unwrap();
        let mut one = One::default();
        visit(&run.dir, &ReadOptions::default(), &mut one).unwrap();
        one.spans.sort_by_key(|span| (span.begin_ns, span.depth));
        let expected: Vec<Span> = all.spans.iter().filter(|span| span.lane == WANTED).copied().collect();
        assert!(expected.len() > 1_000);
        assert_eq!((one.spans, one.iterations), (expected, all.iterations.len()));
        assert!(one.others < all.spans.len() / 10, "{} of {}", one.others, all.spans.len());
    }
}
