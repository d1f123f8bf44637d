use dflash_reports::stages::{Window, stage_table};
use dflash_reports::timeline::SegmentWriter;
use dflash_reports::timeline::record::{Anchor, Iteration, Kind, Lane, Span, Totals};

use super::*;
use crate::state::WindowLength;

const SECOND: i64 = 1_000_000_000;
/// So many runs share the room that this one does not fit into its part.
const RUNS: usize = 100;

/// A finished run of 6000 s, ten iterations a second.
fn long_run(parent: &Path) -> timeline::Result<RunDir> {
    let mut manifest = Manifest::default();
    manifest.started_unix_ns = SECOND;
    let run = RunDir::create(parent, "long", manifest)?;
    let mut writer = SegmentWriter::create(&run, 0, 1 << 20)?;
    writer.anchor(&Anchor { monotonic_ns: 0, realtime_ns: SECOND });
    let lane = writer.lane(&Lane { name: "drafter:0".to_owned(), device: "cpu".to_owned(), rank: 0 });
    let names = ["drafter.wait", "drafter.forward", "drafter.loss", "drafter.backward"].map(|name| writer.name(name));
    for number in 0..60_000 {
        let begin_ns = number as i64 * SECOND / 10;
        for (at, name) in (0..).zip(names) {
            let (iteration, index, device) = (Some(number), None, None);
            let begin_ns = begin_ns + at * 20_000_000;
            let duration_ns = 20_000_000 + number * 7919 % 1_000_003 - 1_000_003;
            writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns, device })?;
        }
        let (kind, duration_ns, cpu_ns, tokens) = (Kind::Train, 90_000_000, None, Some(512));
        writer.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens })?;
        if number % 200 == 0 {
            writer.flush(&[], Totals::default())?;
        }
    }
    writer.end(&[], Totals::default())?;
    let mut manifest = run.manifest()?;
    manifest.state = RunState::Finished;
    run.write_manifest(&manifest)?;
    Ok(run)
}

#[test]
fn what_is_not_in_memory_is_read_when_it_is_looked_at() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let run = long_run(parent.path()).expect("a run can be written");
    let mut source = RunSource::open_as_one_of(run.clone(), RUNS).expect("it can be opened");
    let look = Look { window: WindowLength::Seconds10, ..Look::default() };
    let newest = source.model(&look);
    assert_eq!(newest.extent_ns, Some((0, 5_999_990_000_000)), "all of it can be looked at");
    assert!(newest.held_ns > Some(4000 * SECOND), "only a part is in memory: {:?}", newest.held_ns);
    let whole = timeline::read(&run).expect("it can be read");
    for (second, read) in [(300, true), (301, false), (40, true), (5, true), (5990, false)] {
        let at = second * SECOND;
        let look = Look { at_ns: Some(at), ..look };
        let before = source.past.as_ref().map(Past::begin_ns);
        assert_eq!(source.prepare(&look), !read, "{second} s");
        source.settle(&look);
        assert!(source.prepare(&look), "{second} s");
        assert_eq!(source.past.as_ref().map(Past::begin_ns) != before && source.past.is_some(), read, "{second} s");
        let model = source.model(&look);
        let window = Window { from_ns: Some((at - 10 * SECOND).max(0)), to_ns: Some(at + 1), ..Window::default() };
        let table = stage_table(&whole, &window).lanes.remove(0);
        assert_eq!(model.lanes[0].table.as_ref(), Some(&table), "{second} s");
        assert!(!model.losses.torn && model.losses.problems.is_empty(), "{:?}", model.losses);
    }
    source.prepare(&look);
    assert!(source.past.is_none(), "it is forgotten when the newest part is looked at");
}
#[test]
fn what_cannot_be_read_is_said_once_and_not_tried_again() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let run = long_run(parent.path()).expect("a run can be written");
    let mut source = RunSource::open_as_one_of(run.clone(), RUNS).expect("it can be opened");
    let (segment, aside) = (run.timeline_dir().join("rank0-000001.dft"), parent.path().join("aside"));
    fs::rename(&segment, &aside).expect("it can be moved away");
    fs::create_dir(&segment).expect("something else can stand there");
    let look = Look { window: WindowLength::Seconds10, at_ns: Some(300 * SECOND), ..Look::default() };
    source.settle(&look);
    assert_eq!(source.problems().len(), 1, "{:?}", source.problems());
    assert!(source.prepare(&look) && !source.arrive(), "the same moment is not asked for again");
    fs::remove_dir(&segment).and_then(|()| fs::rename(&aside, &segment)).expect("it can be moved back");
    let look = Look { at_ns: Some(301 * SECOND), ..look };
    source.settle(&look);
    assert!(source.past.is_some(), "another moment is");
}
