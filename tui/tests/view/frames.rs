//! Whole frames, as text: every view at every size that it promises to be legible at.

use crate::synthetic::{self, Scene};
use dflash_reports::timeline::State as RunState;
use dflash_tui::frame_text;
use dflash_tui::state::{Action, State, View};
use dflash_tui::view::adapt::{Charset, Colors};
use dflash_tui::view::{self};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 15)];
const NO_COLOR: Charset = Charset { colors: Colors::None, unicode: true };

/// What a terminal of that size would show.
fn frame(state: &mut State, (columns, lines): (u16, u16), charset: Charset) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal in memory");
    let mut extent = None;
    terminal.draw(|frame| extent = Some(view::draw(state, frame.buffer_mut(), charset))).unwrap();
    state.drawn(extent.expect("drawn above"));
    terminal.backend().buffer().clone()
}

/// Snapshots every view of a scene at every size.
fn snapshot_views(name: &str, scene: &Scene, views: &[View], charset: Charset) {
    let mut state = scene.show();
    for view in views {
        for size in SIZES {
            state.apply(Action::Show(*view));
            let text = frame_text(&frame(&mut state, size, charset));
            insta::assert_snapshot!(format!("{name}-{}-{}x{}", view.title().to_lowercase(), size.0, size.1), text);
        }
    }
}

#[test]
fn a_live_run_on_a_cpu() {
    snapshot_views("pipeline", &Scene::pipeline(), &View::ALL, NO_COLOR);
}

#[test]
fn a_torn_timeline_says_so() {
    let mut scene = Scene::pipeline().ended(RunState::Died, false);
    scene.manifest.ended_unix_ns = None;
    scene.timeline.totals.dropped = 1204;
    scene.timeline.health.bad_blocks = 2;
    scene.timeline.health.problems =
        vec!["timeline/rank0-000001.dft: damaged block at byte 65536, skipped 812 bytes".to_owned()];
    snapshot_views("torn", &scene, &[View::Overview], NO_COLOR);
}

#[test]
fn a_run_without_metrics_and_without_queues() {
    let mut scene = Scene::new(&[("drafter:0", "cpu", synthetic::DRAFTER)]).ended(RunState::Finished, true);
    scene.metrics.clear();
    snapshot_views("bare", &scene, &[View::Overview, View::Training], NO_COLOR);
}

#[test]
fn a_run_that_has_recorded_nothing_yet() {
    let mut scene = Scene::new(&[]);
    scene.metrics.clear();
    snapshot_views("empty", &scene, &View::ALL[..3], NO_COLOR);
}

#[test]
fn eight_lanes_on_gpus() {
    snapshot_views("eight", &Scene::eight_lanes(), &View::ALL[..2], NO_COLOR);
}

#[test]
fn hostile_names_are_escaped() {
    let scene = Scene::hostile();
    snapshot_views("hostile", &scene, &View::ALL[..3], NO_COLOR);
    for view in View::ALL {
        let mut state = scene.show();
        state.apply(Action::Show(view));
        let text = frame_text(&frame(&mut state, (200, 60), NO_COLOR));
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{view:?}");
    }
}

#[test]
fn ascii_only() {
    snapshot_views(
        "ascii",
        &Scene::hostile(),
        &[View::Overview, View::Stages],
        Charset { colors: Colors::None, unicode: false },
    );
    for view in View::ALL {
        let mut state = Scene::pipeline().show();
        state.apply(Action::Show(view));
        let shown = frame(&mut state, (120, 40), Charset { unicode: false, ..Charset::default() });
        assert!(frame_text(&shown).is_ascii(), "{view:?}");
    }
}

#[test]
fn no_color_means_none() {
    for view in View::ALL {
        let mut state = Scene::pipeline().show();
        state.apply(Action::Show(view));
        let shown = frame(&mut state, (120, 40), NO_COLOR);
        assert!(shown.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{view:?}");
    }
}

#[test]
fn losses_are_red() {
    let mut scene = Scene::pipeline();
    scene.timeline.totals.dropped = 7;
    let shown = frame(&mut scene.show(), (120, 40), Charset::default());
    let red: String = shown.content.iter().filter(|cell| cell.fg == Color::Red).map(|cell| cell.symbol()).collect();
    assert_eq!(red, "lost 7 records");
}

#[test]
fn a_terminal_that_is_too_small_says_what_it_takes() {
    let text = frame_text(&frame(&mut Scene::pipeline().show(), (40, 10), NO_COLOR));
    assert_eq!(text, "60x15 needed\n40x10 here\nq quits\n");
}

#[test]
fn the_numbers_are_the_reports() {
    use dflash_reports::report::Report;
    use dflash_reports::stages::Window;
    use dflash_tui::state::WindowLength;

    let scene = Scene::eight_lanes();
    let report = Report::of(&scene.timeline, &Window::default()).unwrap();
    let model = scene.model(WindowLength::Whole);
    assert_eq!(model.verdict, report.verdict_text);
    assert_eq!(model.throughput, report.throughput);
    let tables: Vec<_> = model.lanes.into_iter().filter_map(|lane| lane.table).collect();
    assert_eq!(tables, report.stages.lanes);
}
