//! The list of runs, and the dump.

use crate::support::small_run;
use dflash_reports::dump;
use dflash_reports::runs::list;
use dflash_reports::text::Look;
use dflash_reports::timeline::record::{DeviceAnchor, Expired, LaneId, LaneTotals, NameId, StackSample};
use dflash_reports::timeline::{Manifest, RunDir, State};

#[test]
fn runs_are_listed_with_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let mut manifest = Manifest::default();
    manifest.started_unix_ns = 1_700_000_000_000_000_000;
    let run = RunDir::create(dir.path(), "first", manifest.clone()).unwrap();
    let mut done = run.manifest().unwrap();
    done.state = State::Finished;
    done.ended_unix_ns = Some(1_700_000_192_000_000_000);
    done.results.insert("tau".into(), 1.912.into());
    run.write_manifest(&done).unwrap();
    manifest.started_unix_ns += 1_000_000_000_000;
    let second = RunDir::create(dir.path(), "second", manifest).unwrap();
    second.rank_trouble(1, 1).note("the timeline is no longer written: no room").unwrap();
    std::fs::create_dir(dir.path().join("stranger")).unwrap();
    let runs = list(dir.path(), 1_700_001_012_000_000_000).unwrap();
    let text = runs.table(Look::default()).replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(text, @r"
    run                        state      length  tokens/s   tau
    20231114-223000-second   running      12.0 s       N/A   N/A
    20231114-221320-first   finished  3 min 12 s       N/A  1.91
    20231114-223000-second: the recording is incomplete: rank 1: the timeline is no longer written: no room
    not readable: DIR/stranger is not a run directory: run.json is missing; give a directory under runs/ (`dflash runs` lists them)
    ");
}

#[test]
fn the_dump_has_a_line_per_record() {
    let timeline = small_run();
    let mut out = Vec::new();
    dump::records(&timeline, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(lines("span "), timeline.spans.len());
    assert_eq!(lines("iteration "), timeline.iterations.len());
    assert_eq!(lines("sample "), timeline.samples.len());
    let mut out = Vec::new();
    dump::totals(&timeline, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    read lanes=2 iterations=41 spans=161 samples=3 flows=0 marks=0 stacks=0
    totals emitted=200 written=200 dropped=0 open=0 negative=0 unresolved=0 misplaced=0
    health whole ended=true bad_blocks=0 skipped_bytes=0
    ");
}

#[test]
fn the_dump_shows_stacks_anchors_and_each_lanes_accounts() {
    let mut timeline = small_run();
    let [first, second] = [0, 1].map(LaneId);
    let (spans, frames) = (vec![NameId(0)], vec![NameId(1), NameId(0)]);
    let (thread, iteration) = (NameId(1), Some(3));
    timeline.stacks = vec![StackSample { time_ns: 5, tid: 77, thread, lane: Some(first), iteration, spans, frames }];
    timeline.device_anchors =
        vec![DeviceAnchor { device: NameId(0), device_ns: -3, host_ns: 9, uncertainty_ns: 1_000 }];
    timeline.lane_totals = vec![
        LaneTotals { lane: first, emitted: 10, written: 7, dropped: 3 },
        LaneTotals { lane: second, emitted: 10, written: 7, dropped: 2 },
    ];
    timeline.expired = Expired { records: 1_000, segments: 2, bytes: 12_345 };
    timeline.detail_from_ns = Some(1_000);
    let mut out = Vec::new();
    dump::records(&timeline, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let new = |line: &&str| ["stack ", "device-anchor ", "lane ", "expired "].iter().any(|word| line.starts_with(word));
    insta::assert_snapshot!(text.lines().filter(new).collect::<Vec<_>>().join("\n"), @r"
    stack target:0@0 #3 target.put tid=77 time=-995 spans=target.forward frames=target.put;target.forward
    device-anchor target.forward time=-991 device=-3 uncertainty=1000
    lane target:0@0 emitted=10 written=7 dropped=3
    lane drafter:0@0 emitted=10 written=7 dropped=2 unaccounted=1
    expired records=1000 segments=2 bytes=12345 detail_from=1000
    ");
}
