//! Any size, any key, any run: a frame is drawn, and nothing panics.

use crate::synthetic::Scene;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dflash_reports::timeline::State as RunState;
use dflash_tui::input;
use dflash_tui::state::{Model, State, WindowLength};
use dflash_tui::view;
use dflash_tui::view::adapt::{Charset, Colors};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const KEYS: [KeyCode; 34] = [
    KeyCode::Char('q'),
    KeyCode::Esc,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Char('1'),
    KeyCode::Char('2'),
    KeyCode::Char('3'),
    KeyCode::Char('4'),
    KeyCode::Char('?'),
    KeyCode::Char('h'),
    KeyCode::Char('j'),
    KeyCode::Char('k'),
    KeyCode::Char('l'),
    KeyCode::Char('g'),
    KeyCode::Char('G'),
    KeyCode::Char('p'),
    KeyCode::Char(' '),
    KeyCode::Char('+'),
    KeyCode::Char('-'),
    KeyCode::Char('w'),
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::Enter,
    KeyCode::F(1),
    KeyCode::Delete,
    KeyCode::Char('\u{0}'),
    KeyCode::Char('目'),
    KeyCode::Null,
];

fn models() -> Vec<Model> {
    let nothing = Scene { metrics: Vec::new(), ..Scene::new(&[]) };
    let torn = Scene::pipeline().ended(RunState::Died, false);
    let scenes = [Scene::pipeline(), Scene::eight_lanes(), Scene::hostile(), nothing, torn];
    scenes.iter().map(|scene| scene.model(WindowLength::Minute)).collect()
}

fn charset() -> impl Strategy<Value = Charset> {
    let colors = prop::sample::select(vec![Colors::None, Colors::Sixteen, Colors::Palette, Colors::True]);
    (colors, any::<bool>()).prop_map(|(colors, unicode)| Charset { colors, unicode })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20) })]

    #[test]
    fn no_size_and_no_key_panics(
        sizes in prop::collection::vec((1u16..=300, 1u16..=100), 1..24),
        keys in prop::collection::vec(prop::sample::select(KEYS.to_vec()), 24),
        charset in charset(),
    ) {
        for model in models() {
            let mut state = State::new(model, std::time::Duration::from_secs(1), WindowLength::Minute);
            for ((columns, lines), key) in sizes.iter().zip(&keys) {
                let mut frame = Buffer::empty(Rect::new(0, 0, *columns, *lines));
                let extent = view::draw(&state, &mut frame, charset);
                state.drawn(extent);
                if let Some(action) = input::action(KeyEvent::new(*key, KeyModifiers::NONE), state.view) {
                    state.apply(action);
                }
            }
        }
    }
}
