//! The page: of its own, escaped, bounded.

use crate::support::{Builder, MS, small_run};
use dflash_reports::history::History;
use dflash_reports::report::{Charts, Report, html, markdown, stages_csv, table};
use dflash_reports::stages::stage_table;
use dflash_reports::text::Look;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::Kind;
use dflash_reports::window::Window;

fn page(timeline: &Timeline) -> String {
    let report = Report::of(timeline, &Window::default()).unwrap();
    let history = History::of(timeline, &Window::default(), &report.stages, Some(0));
    html(&report, &Charts { history, ..Charts::default() })
}

#[test]
fn it_needs_nothing_but_itself() {
    let page = page(&small_run());
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for outside in ["http:", "https:", "<script", "<link rel=\"stylesheet", "@import", "url(", "src=", "NaN", "inf"] {
        let found = page.find(outside);
        assert!(found.is_none(), "{outside}: {}", &page[found.unwrap_or(0)..][..60]);
    }
    assert!(page.contains("default-src 'none'"));
    for heading in ["Where the time went", "Over time", "Queues", "Stages", "goodput"] {
        assert!(page.contains(&format!(">{heading}</h")), "{heading}");
    }
    assert_eq!(page.matches("<svg").count(), 2 * 2 + 1, "two a lane and one a queue");
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

const NASTY: &str = "<script>alert(1)</script>\"'&;\u{1b}[2J\u{9b}31m\u{202e}\n";

#[test]
fn names_cannot_break_out_of_any_form() {
    let b = Builder::new().lane_on(NASTY, NASTY).iteration(Kind::Train, 0, |b| {
        b.span(NASTY, MS);
    });
    let timeline = b.counter(&format!("queue.{NASTY}.depth"), NASTY, &[1.0, 2.0]).timeline;
    let page = page(&timeline);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    let report = Report::of(&timeline, &Window::default()).unwrap();
    let text = table(&report, Look::default());
    for form in [&page, &text, &markdown(&report)] {
        assert!(!form.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{form}");
    }
    assert_eq!(
        text.lines().filter(|line| line.contains("alert(1)")).count(),
        3,
        "each name stays in its line:\n{text}"
    );
    assert!(!markdown(&report).contains("<script"));
    let csv = stages_csv(&report.stages).unwrap();
    let mut rows = csv::Reader::from_reader(csv.as_slice());
    let first = rows.records().next().unwrap().unwrap();
    assert_eq!((&first[2], &first[4]), (NASTY, NASTY), "other programs get the name as it is");
}

#[test]
fn many_names_are_bounded_where_people_read() {
    names_are_bounded(100_000, "99,801");
}

#[test]
#[ignore = "20 seconds when it is not optimised"]
fn a_million_names_are_bounded_where_people_read() {
    names_are_bounded(1_000_000, "999,801");
}

fn names_are_bounded(many: u32, more: &str) {
    let b = Builder::new().lane("drafter:0").iteration(Kind::Train, 0, |_| ());
    let mut timeline = b.timeline;
    let span = |name: u32| dflash_reports::timeline::record::Span {
        name: dflash_reports::timeline::record::NameId(name),
        lane: dflash_reports::timeline::record::LaneId(0),
        iteration: Some(0),
        index: None,
        depth: 0,
        begin_ns: 1_000 + i64::from(name),
        duration_ns: 1,
        device: None,
    };
    timeline.names = (0..many).map(|name| format!("stage {name}")).collect();
    timeline.spans = (0..many).map(span).collect();
    timeline.iterations[0].duration_ns = u64::from(many);
    let report = Report::of(&timeline, &Window::default()).unwrap();
    assert_eq!(report.stages.lanes[0].rows.len(), many as usize + 1);
    let text = table(&report, Look::default());
    let more = format!("and {more} rows more (--format csv and json have all)");
    assert!(text.contains(&more), "{}", &text[text.len() - 2000..]);
    let page = page(&timeline);
    assert!(page.len() < 300_000, "{} bytes", page.len());
    assert_eq!(stages_csv(&report.stages).unwrap().iter().filter(|b| **b == b'\n').count(), many as usize + 3);
}

#[test]
fn nothing_and_one_thing_give_a_page() {
    assert!(page(&Timeline::default()).contains("no finished iteration was recorded yet"));
    let one = Builder::new().lane("drafter:0").iteration(Kind::Train, 0, |_| ());
    let page = page(&one.counter("gpu.cuda:0.power", "W", &[70.0]).timeline);
    assert!(page.contains("cuda:0: power") && !page.contains("NaN"));
}

#[test]
fn the_pieces_hold_what_the_table_holds() {
    let timeline = small_run();
    let stages = stage_table(&timeline, &Window::default());
    let history = History::of(&timeline, &Window::default(), &stages, Some(0));
    assert_eq!(history.lanes.len(), stages.lanes.len());
    for (course, table) in history.lanes.iter().zip(&stages.lanes) {
        assert_eq!(course.pieces.iter().map(|piece| piece.iterations).sum::<u64>(), table.iterations);
        for (at, name) in course.stages.iter().enumerate() {
            let total: f64 = course.pieces.iter().map(|piece| piece.stages[at] * piece.iterations as f64).sum();
            let expected = table.stage(name).unwrap().host.total_ns as f64;
            assert!((total - expected).abs() <= expected * 1e-9, "{name}: {total} against {expected}");
        }
    }
}
