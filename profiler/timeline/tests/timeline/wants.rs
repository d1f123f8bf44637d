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

/// Takes the first of the spans that follow each other.
#[derive(Default)]
struct First {
    spans: Vec<Span>,
    iterations: Vec<Iteration>,
}

impl Visit for First {
    fn spans(&mut self, lane: LaneId, mut spans: impl Iterator<Item = Span>) {
        let first = spans.next();
        assert!(first.is_none_or(|span| span.lane == lane));
        self.spans.extend(first);
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.iterations.push(iteration);
    }
}

/// The begin of a stream.
fn record(device: bool) -> Run {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let mut written = Written::default();
    stream::introduce(&mut writer);
    written.write(&mut writer, &stream::events(device)[..40_000]).unwrap();
    writer.end(&[], written.totals()).unwrap();
    run
}

#[test]
fn spans_of_other_lanes_are_passed_by() {
    for device in [false, true] {
        let run = record(device);
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

#[test]
fn what_a_reader_leaves_of_a_lane_s_spans_is_lost_and_nothing_else() {
    for device in [false, true] {
        let run = record(device);
        let all = read(&run.dir).unwrap();
        let mut first = First::default();
        let seen = visit(&run.dir, &ReadOptions::default(), &mut first).unwrap();
        assert!(seen.health.ended && seen.health.problems.is_empty(), "{:?}", seen.health);
        assert!(first.spans.len() > 1_000 && first.spans.len() < all.spans.len() / 2);
        let key = |span: &Span| (span.lane, span.begin_ns, span.depth);
        let mut expected = all.spans.clone();
        expected.sort_by_key(key);
        for span in &first.spans {
            let found = expected.binary_search_by_key(&key(span), key).map(|at| expected[at]);
            assert_eq!(found, Ok(*span), "each is a difference to those before it");
        }
        first.iterations.sort_by_key(|iteration| (iteration.lane, iteration.begin_ns));
        assert_eq!(first.iterations, all.iterations);
    }
}
