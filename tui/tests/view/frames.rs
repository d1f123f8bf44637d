//! Whole frames, as text: every view at every size that it promises to be legible at.

use crate::synthetic::{self, Scene};
use dflash_reports::timeline::State as RunState;
use dflash_reports::timeline::record::Severity;
use dflash_tui::frame_text;
use dflash_tui::state::{Action, State, View};
use dflash_tui::view::adapt::{Charset, Colors};
use dflash_tui::view::{self};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

pub const SMALL: (u16, u16) = (80, 24);
pub const USUAL: (u16, u16) = (120, 40);
pub const LARGE: (u16, u16) = (200, 60);
const SMALLEST: (u16, u16) = (60, 15);
pub const NO_COLOR: Charset = Charset { colors: Colors::None, unicode: true, light: false };
const ASCII: Charset = Charset { colors: Colors::None, unicode: false, light: false };

/// What a terminal of that size would show.
pub fn frame(state: &mut State, (columns, lines): (u16, u16), charset: Charset) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal in memory");
    let mut extent = None;
    terminal.draw(|frame| extent = Some(view::draw(state, frame.buffer_mut(), charset))).unwrap();
    state.drawn(extent.expect("drawn above"));
    terminal.backend().buffer().clone()
}

/// Snapshots views of a scene, one file for each size.
fn snapshot(name: &str, scene: &Scene, views: &[View], sizes: &[(u16, u16)], charset: Charset) {
    for size in sizes {
        let mut all = String::new();
        for view in views {
            let text = frame_text(&frame(&mut scene.show_view(*view), *size, charset));
            all += &format!("===== {}\n{text}", view.title());
        }
        insta::assert_snapshot!(format!("{name}-{}x{}", size.0, size.1), all);
    }
}

#[test]
fn a_live_run_on_a_cpu() {
    snapshot("pipeline", &Scene::pipeline(), &View::ALL, &SIZES, NO_COLOR);
}

const SIZES: [(u16, u16); 4] = [SMALL, USUAL, LARGE, SMALLEST];
/// The help is the same for all.
const VIEWS: &[View] = View::ALL.split_at(8).0;

#[test]
fn one_gpu() {
    snapshot("one-gpu", &Scene::gpus(1), VIEWS, &SIZES, NO_COLOR);
}

/// One is divided and gives little, the other lacks a sensor.
#[test]
fn two_gpus_of_which_not_all_is_known() {
    let scene =
        Scene::gpus(2).lacking("cuda:1", "utilization").lacking("cuda:1", "power").lacking("cuda:1", "throttle");
    let scene = scene.lacking("cuda:0", "temperature");
    let text = "cuda:1 (GPU-7f) is divided (MIG): the whole GPU is sampled, not the part in use";
    snapshot("two-gpus", &scene.marked(Severity::Info, text), VIEWS, &SIZES, NO_COLOR);
}

#[test]
fn eight_gpus_one_of_them_lost() {
    snapshot("eight-gpus", &Scene::gpus(8).losing("cuda:5"), VIEWS, &SIZES, NO_COLOR);
}

#[test]
fn sixty_four_gpus() {
    snapshot("many-gpus", &Scene::gpus(64).losing("cuda:50"), VIEWS, &SIZES, NO_COLOR);
}

/// The most that one screen is meant for: every view still draws, and says how much of it is seen.
#[test]
fn a_hundred_and_twenty_eight_gpus() {
    let scene = Scene::gpus(128).losing("cuda:100");
    for size in SIZES {
        for view in VIEWS {
            let text = frame_text(&frame(&mut scene.show_view(*view), size, NO_COLOR));
            assert!(text.contains(view.title()), "{view:?} at {size:?}\n{text}");
        }
        let overview = frame_text(&frame(&mut scene.show(), size, NO_COLOR));
        // Worst first: the lost one is among those that are seen.
        let lost = overview.lines().any(|line| line.contains("drafter:36") && line.contains(" lost"));
        assert!(overview.contains("of 129") && lost, "{size:?}\n{overview}");
    }
}

/// Without a run: GPUs alone, and not even these.
#[test]
fn without_a_run() {
    let mut scene = Scene::alone(2);
    scene.problems = vec!["no run in runs".to_owned()];
    snapshot("alone", &scene, &[View::Gpus, View::Overview, View::Stages, View::Events], &SIZES, NO_COLOR);
    let mut scene = Scene::alone(0);
    scene.problems = vec!["no run in runs".to_owned(), "no GPU is shown: NVIDIA's driver is not loaded".to_owned()];
    snapshot("nothing", &scene, VIEWS, &SIZES, NO_COLOR);
}

#[test]
fn a_torn_timeline_says_so() {
    let mut scene = Scene::pipeline().ended(RunState::Died, false);
    scene.manifest.ended_unix_ns = None;
    scene.timeline.totals.dropped = 1204;
    scene.timeline.health.bad_blocks = 2;
    scene.timeline.health.problems =
        vec!["timeline/rank0-000001.dft: damaged block at byte 65536, skipped 812 bytes".to_owned()];
    snapshot("torn", &scene, VIEWS, &SIZES, NO_COLOR);
}

#[test]
fn a_run_without_metrics_and_without_queues() {
    let mut scene = Scene::new(&[("drafter:0", "cpu", synthetic::DRAFTER)]).ended(RunState::Finished, true);
    scene.metrics.clear();
    snapshot("bare", &scene, &View::ALL[..8], &[SMALL], NO_COLOR);
}

#[test]
fn a_run_that_has_recorded_nothing_yet() {
    let mut scene = Scene::new(&[]);
    scene.metrics.clear();
    snapshot("empty", &scene, &View::ALL[..8], &[SMALL], NO_COLOR);
}

#[test]
fn hostile_names_are_escaped() {
    let scene = Scene::hostile();
    snapshot("hostile", &scene, &View::ALL[..8], &[USUAL], NO_COLOR);
    for view in View::ALL {
        let mut state = scene.show_view(view);
        state.filter = String::new();
        state.say("\u{1b}]0;said\u{7}", true);
        state.open("\u{1b}[2J", vec!["\u{9b}31m".to_owned()]);
        for _ in 0..2 {
            let text = frame_text(&frame(&mut state, LARGE, NO_COLOR));
            assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{view:?}");
            state.apply(Action::Back);
        }
    }
}

#[test]
fn ascii_only() {
    snapshot("ascii", &Scene::gpus(8), &View::ALL[..5], &[SMALL], ASCII);
    for scene in [Scene::pipeline(), Scene::hostile(), Scene::gpus(20)] {
        for view in View::ALL {
            let shown = frame(&mut scene.show_view(view), USUAL, Charset { unicode: false, ..Charset::default() });
            assert!(frame_text(&shown).is_ascii(), "{view:?}");
        }
    }
}

#[test]
fn no_color_means_none() {
    for view in View::ALL {
        let shown = frame(&mut Scene::gpus(8).show_view(view), USUAL, NO_COLOR);
        assert!(shown.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{view:?}");
    }
}

#[test]
fn losses_are_red() {
    let mut scene = Scene::pipeline();
    scene.timeline.totals.dropped = 7;
    let shown = frame(&mut scene.show(), USUAL, Charset::default());
    let red: String = shown.content.iter().filter(|cell| cell.fg == Color::Red).map(|cell| cell.symbol()).collect();
    assert_eq!(red, "lost 7 records");
}
