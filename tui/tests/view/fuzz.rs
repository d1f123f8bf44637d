//! Any size, any key, any run: a frame is drawn, and nothing panics.

use std::sync::LazyLock;

use crate::synthetic::Scene;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use dflash_reports::timeline::State as RunState;
use dflash_tui::input;
use dflash_tui::state::{Next, State};
use dflash_tui::view;
use dflash_tui::view::adapt::{Charset, Colors};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SPECIAL: [KeyCode; 20] = [
    KeyCode::Esc,
    KeyCode::Esc,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::Enter,
    KeyCode::Backspace,
    KeyCode::F(1),
    KeyCode::Delete,
    KeyCode::Char('\u{0}'),
    KeyCode::Char('目'),
    KeyCode::Char('\u{200b}'),
    KeyCode::Null,
];

/// Built once: their frames are what is tested.
static SCENES: LazyLock<[(Scene, State); 6]> = LazyLock::new(|| {
    let nothing = Scene { metrics: Vec::new(), ..Scene::new(&[]) };
    let torn = Scene::pipeline().ended(RunState::Died, false);
    let finished = Scene::gpus(2).ended(RunState::Finished, true);
    let many = Scene::gpus(20).losing("cuda:3");
    [Scene::pipeline(), many, Scene::hostile(), nothing, torn, finished].map(|scene| {
        let state = scene.show();
        (scene, state)
    })
});

fn key() -> impl Strategy<Value = KeyCode> {
    // Views and letters are what most keys are for.
    prop_oneof![
        4 => prop::char::range('!', '~').prop_map(KeyCode::Char),
        2 => prop::char::range('1', '9').prop_map(KeyCode::Char),
        3 => prop::sample::select(SPECIAL.to_vec()),
    ]
}

fn charset() -> impl Strategy<Value = Charset> {
    let colors = prop::sample::select(vec![Colors::None, Colors::Sixteen, Colors::Palette, Colors::True]);
    (colors, any::<bool>(), any::<bool>()).prop_map(|(colors, unicode, light)| Charset { colors, unicode, light })
}

fn size() -> impl Strategy<Value = (u16, u16)> {
    // Also as small as it still draws: that is where layouts break.
    prop_oneof![3 => (1u16..=300, 1u16..=100), 1 => (60u16..=64, 15u16..=18)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: ProptestConfig::default().cases / 32, ..ProptestConfig::default() })]

    #[test]
    fn no_size_and_no_key_panics(
        sizes in prop::collection::vec(size(), 24),
        keys in prop::collection::vec(key(), 24),
        click in (0u16..300, 0u16..3),
        charset in charset(),
    ) {
        for (scene, state) in SCENES.iter() {
            let mut state = state.clone();
            for ((columns, lines), key) in sizes.iter().zip(&keys) {
                let mut frame = Buffer::empty(Rect::new(0, 0, *columns, *lines));
                let extent = view::draw(&state, &mut frame, charset);
                state.drawn(extent);
                let mut next = None;
                if let Some(action) = input::action(KeyEvent::new(*key, KeyModifiers::NONE), state.focus()) {
                    next = Some(state.apply(action));
                }
                state.tick(std::time::Duration::from_secs(3));
                if next == Some(Next::Recompute) {
                    scene.refresh(&mut state);
                }
            }
            let (column, row, modifiers) = (click.0, click.1, KeyModifiers::NONE);
            let click = MouseEvent { kind: MouseEventKind::Down(MouseButton::Left), column, row, modifiers };
            if let Some(action) = input::mouse(click) {
                state.apply(action);
            }
        }
    }
}
