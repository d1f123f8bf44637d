//! What a lane's records become, with ticks that the test makes up.

use std::sync::Arc;

use dflash_timeline::record::{Kind, Totals};
use dflash_timeline::{IterationsWriter, Manifest, RunDir, SegmentWriter, read, read_iterations};

use super::{Desk, Feed};
use crate::on::clock_map::ClockMap;
use crate::on::event::{Event, NONE, Pairing};
use crate::on::hub::{Hub, LaneShared, NewLane, bump};
use crate::on::output::Output;
use crate::on::rows::Rows;
use crate::on::site::Site;
use crate::{DeviceTiming, Options};

static STAGE: Site = Site::new("a.stage");

/// Counters of processors that are not alike, or that a virtual machine has moved: a span's end may read less than its begin.
#[test]
fn a_clock_that_ran_backwards_gives_nothing_and_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "back", Manifest::default()).unwrap();
    let hub = Arc::new(Hub::new(&Options::new(run.clone())).0);
    let csv = IterationsWriter::open(&run.iterations_csv()).unwrap();
    let rows = Rows { csv, rank: 0, attempt: 1, to_unix_ns: 0 };
    let mut out = Output::new(hub, SegmentWriter::create(&run, 0, 1 << 20).unwrap(), rows, 0);
    let (mut ring, events) = rtrb::RingBuffer::new(16);
    let shared = Arc::new(LaneShared::new("a", "cpu"));
    let (map, timing) = (ClockMap::new((0, 0), 1.0), DeviceTiming::default());
    let mut feed = Feed::new(NewLane { events, shared: Arc::clone(&shared) }, &mut out, &timing);

    let stage = |begin, end| Event::Span { depth: 0, site: STAGE.id(), index: NONE, iteration: 7, begin, end };
    let around = |begin, end| Event::Iteration { kind: Kind::Train, pairing: Pairing::Alone, number: 7, begin, end };
    for event in [stage(1_000, 1_400), stage(1_500, 900), around(1_600, 800)] {
        ring.push(event).unwrap();
        bump(&shared.emitted, 1);
    }
    let mut desk = Desk { map: &map, out: &mut out, timing: &timing, expired_ns: i64::MAX };
    assert!(!feed.collect(&mut desk), "the lane goes on");
    assert_eq!(feed.faults(), Totals { negative: 2, ..Totals::default() });
    let (emitted, dropped) = feed.made();
    out.accounts.made(feed.source, emitted, dropped);
    let (totals, _) = out.end(&[], Totals { emitted, ..feed.faults() });
    assert_eq!((totals.emitted, totals.written, totals.negative), (3, 3, 2));

    let timeline = read(&run).unwrap();
    assert_eq!(timeline.totals.negative, 2);
    let spans: Vec<_> = timeline.spans.iter().map(|span| (span.begin_ns, span.duration_ns)).collect();
    assert_eq!(spans, [(1_000, 400), (1_500, 0)]);
    assert_eq!(timeline.iterations[0].duration_ns, 0);
    let rows = read_iterations(&run.iterations_csv()).unwrap();
    let times: Vec<_> = rows.iter().map(|row| (row.stage.as_str(), row.host_ns)).collect();
    assert_eq!(
        times,
        [("a.stage", Some(400)), ("residue", Some(0)), ("total", Some(0))],
        "nothing is less than nothing"
    );
}
