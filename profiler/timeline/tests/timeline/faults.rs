//! What hosts, clocks and people do to a recording in mid-run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use dflash_timeline::record::{Anchor, Lane, Mark, Severity, Span, Totals};
use dflash_timeline::{RunDir, SegmentWriter, StreamOptions, read};

use crate::support::{Run, SEGMENT};

/// Tells this test's process, started anew, that it is to write, and where.
const CHILD: &str = "DFLASH_TEST_WRITES_TO";

/// Writes a span a block for ever, and says after each one how many are written, or what went wrong.
#[test]
#[ignore = "started by the tests below in a process of its own"]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let run = RunDir::open(Path::new(&path)).unwrap();
    let mut writer = SegmentWriter::create(&run, 0, SEGMENT).unwrap();
    for number in 0.. {
        let wrote = block(&mut writer, number);
        match wrote {
            Ok(()) => println!("wrote {}", number + 1),
            Err(error) => {
                println!("error {error}");
                return;
            }
        }
    }
}

fn block(writer: &mut SegmentWriter, number: u64) -> dflash_timeline::Result<()> {
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let (name, iteration, index, device) = (writer.name("a.step"), Some(number), None, None);
    let begin_ns = 1_000 + 10 * number as i64;
    writer.span(&Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns: 9, device })?;
    writer.flush(&[], Totals { emitted: number + 1, ..Totals::default() })
}

/// This test's process anew, in a shell that first does `before`.
fn start(run: &Run, before: &str) -> std::process::Child {
    let own = std::env::current_exe().unwrap();
    Command::new("sh")
        .args([
            "-c",
            &format!("{before} exec \"$0\" faults::child --exact --ignored --nocapture"),
            own.to_str().unwrap(),
        ])
        .env(CHILD, run.dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn written(line: &str) -> Option<usize> {
    line.rsplit_once("wrote ")?.1.parse().ok()
}

#[test]
fn killed_at_any_moment() {
    for round in 1..8 {
        let run = Run::new();
        let mut child = start(&run, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.by_ref().find(|line| written(line) >= Some(37 * round)).unwrap();
        child.kill().unwrap();
        let last = lines.filter_map(|line| written(&line)).last().unwrap_or(37 * round);
        child.wait().unwrap();
        let timeline = read(&run.dir).unwrap();
        assert!(!timeline.health.ended && timeline.health.bad_blocks == 0, "{:?}", timeline.health);
        let found = timeline.spans.len();
        assert!(found == last || found == last + 1, "{found} of {last}");
        assert_eq!(timeline.totals.written, found as u64);
    }
}

#[test]
fn a_full_disk_is_said_with_the_file() {
    let run = Run::new();
    // A file may not grow beyond 16 blocks of the shell; without the signal that would end the process.
    let mut child = start(&run, "trap '' XFSZ; ulimit -f 16;");
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    child.wait().unwrap();
    let last = lines.iter().filter_map(|line| written(line)).next_back().unwrap();
    let error = lines.iter().find_map(|line| line.split_once("error ")).unwrap().1;
    assert!(error.contains("rank0-000001.dft: cannot write it:"), "{error}");
    let timeline = read(&run.dir).unwrap();
    assert_eq!(timeline.spans.len(), last, "what was written before is there");
    assert!(!timeline.health.ended);
}

#[test]
fn a_directory_that_goes_away_is_said_with_the_file() {
    let run = Run::new();
    let options = StreamOptions { segment_bytes: 300, keep_bytes: Some(1 << 20), sync_every: None };
    let mut writer = SegmentWriter::with_options(&run.dir, 0, &options).unwrap();
    block(&mut writer, 0).unwrap();
    fs::remove_dir_all(run.dir.timeline_dir()).unwrap();
    let error = (1..9).find_map(|number| block(&mut writer, number).err()).unwrap().to_string();
    assert!(error.contains("rank0-000002.dft: cannot create it"), "{error}");
    assert!(writer.written() < 9);
    // The directory is back: the stream goes on, and what was lost in between is said.
    fs::create_dir_all(run.dir.timeline_dir()).unwrap();
    (9..12).for_each(|number| block(&mut writer, number).unwrap());
    let timeline = read(&run.dir).unwrap();
    assert_eq!(timeline.spans.len(), 3);
    assert!(timeline.health.problems[0].contains("are not all there"), "{:?}", timeline.health);
}

#[test]
fn clocks_that_step_back() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let lane = writer.lane(&Lane { name: "a".into(), device: "cpu".into(), rank: 0 });
    let name = writer.name("a.step");
    for (monotonic_ns, realtime_ns) in
        [(5_000, 1_700_000_000_000_000_000), (6_000, 1_600_000_000_000_000_000), (10, -1)]
    {
        writer.anchor(&Anchor { monotonic_ns, realtime_ns });
        let (iteration, index, device) = (Some(0), None, None);
        let span = Span { name, lane, iteration, index, depth: 0, begin_ns: monotonic_ns, duration_ns: 0, device };
        writer.span(&span).unwrap();
        writer.mark(&Mark { time_ns: monotonic_ns, severity: Severity::Info, text: "\u{1b}[2J;\t\0".into() }).unwrap();
    }
    writer.end(&[], Totals { emitted: 6, negative: 1, ..Totals::default() }).unwrap();
    let timeline = read(&run.dir).unwrap();
    assert!(timeline.health.ended && timeline.health.problems.is_empty());
    assert_eq!(timeline.spans.iter().map(|s| s.begin_ns).collect::<Vec<_>>(), [10, 5_000, 6_000]);
    assert_eq!(timeline.anchors.iter().map(|a| a.realtime_ns).collect::<Vec<_>>()[0], -1);
    assert_eq!((timeline.marks.len(), timeline.totals.negative), (3, 1));
}
