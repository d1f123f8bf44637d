//! Names that are trouble elsewhere come back as they were given.

use dflash_profiler::timeline::read_iterations;
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{Kind, Level, begin_iteration, span};

use crate::support::Recording;

/// Control characters, what other formats separate with, digits at the end, nothing at all, and 10 kB of UTF-8.
fn names() -> Vec<String> {
    let short = [
        "",
        " ",
        "a;b c",
        "tail 17",
        "17",
        "\u{1b}[2J\u{7}\0\r\n\t",
        "say \"x\", 'y'",
        "<b>&amp;",
        "\u{202e}rtl",
        "DFTB",
    ];
    short.into_iter().map(str::to_owned).chain(["é".repeat(5_000)]).collect()
}

#[test]
fn lanes_counters_marks_and_threads() {
    let recording = Recording::start(Level::Layers);
    let profiler = &recording.profiler;
    for name in names() {
        let _lane = profiler.lane(&name, &name).enter();
        profiler.counter(&name, &name).record(17.0);
        profiler.mark(Severity::Warning, &name);
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("a.step");
    }
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.dropped, 0);
    let wanted = names();
    let lanes: Vec<_> = timeline.lanes.iter().map(|lane| (&lane.name, &lane.device)).collect();
    assert_eq!(lanes, wanted.iter().map(|name| (name, name)).collect::<Vec<_>>());
    let counters: Vec<_> = timeline.counters.iter().map(|counter| (&counter.name, &counter.unit)).collect();
    assert_eq!(counters, wanted.iter().map(|name| (name, name)).collect::<Vec<_>>());
    assert_eq!(timeline.marks.iter().map(|mark| &mark.text).collect::<Vec<_>>(), wanted.iter().collect::<Vec<_>>());
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    assert_eq!(rows.len(), 3 * wanted.len());
    for (rows, name) in rows.chunks(3).zip(&wanted) {
        assert!(rows.iter().all(|row| (&row.lane, &row.device) == (name, name)), "{name:?}: {rows:?}");
    }
}

#[test]
fn spans() {
    let recording = Recording::start(Level::Layers);
    let lane = recording.profiler.lane("a", "cpu").enter();
    {
        let _iteration = begin_iteration(Kind::Train);
        let _separated = span!("a;b c, \"d\"");
        let _nothing = span!("");
        let _number = span!("tail 17");
        let _alike = span!("tail 17 ");
        let _control = span!("\u{1b}[2J\0\r\n\u{202e}", index = 17);
    }
    drop(lane);
    let (timeline, _) = recording.finish();
    let mut found: Vec<_> = timeline.spans.iter().map(|span| (span.depth, timeline.name(span.name))).collect();
    found.sort_unstable();
    let wanted = ["a;b c, \"d\"", "", "tail 17", "tail 17 ", "\u{1b}[2J\0\r\n\u{202e}"];
    assert_eq!(found, (0..).zip(wanted).collect::<Vec<_>>());
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    assert_eq!(rows.iter().map(|row| row.stage.as_str()).collect::<Vec<_>>(), [wanted[0], "residue", "total"]);
}
