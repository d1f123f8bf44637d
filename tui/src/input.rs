//! Which key means what. The one place that knows keys; [`crate::state::State`] knows only what they mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::state::{Action, View};

/// What a key press means while `view` is shown; `None` for a key without a meaning.
#[must_use]
pub fn action(key: KeyEvent, view: View) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // In raw mode Ctrl-C is a key like any other: no signal comes.
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'C') => Some(Action::Quit),
            KeyCode::Char('f') => Some(Action::PageDown),
            KeyCode::Char('b') => Some(Action::PageUp),
            KeyCode::Char('l') => Some(Action::Redraw),
            _ => None,
        };
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    match key.code {
        KeyCode::Char(letter) => character(letter, view),
        KeyCode::Esc => Some(Action::Back),
        KeyCode::Tab => Some(Action::NextView),
        KeyCode::BackTab => Some(Action::PreviousView),
        KeyCode::Up => Some(Action::Up),
        KeyCode::Down => Some(Action::Down),
        KeyCode::Left => Some(Action::Left),
        KeyCode::Right => Some(Action::Right),
        KeyCode::PageUp => Some(Action::PageUp),
        KeyCode::PageDown => Some(Action::PageDown),
        KeyCode::Home => Some(Action::Home),
        KeyCode::End => Some(Action::End),
        _ => None,
    }
}

fn character(letter: char, view: View) -> Option<Action> {
    let action = match letter {
        'q' => Action::Quit,
        // `h` is both "help" and the left of hjkl in this field's tools: it moves where there is something to the left.
        'h' if view == View::Stages => Action::Left,
        '?' | 'h' => Action::Show(View::Help),
        '1' => Action::Show(View::Overview),
        '2' => Action::Show(View::Stages),
        '3' => Action::Show(View::Training),
        '4' => Action::Show(View::Help),
        'p' | ' ' => Action::Pause,
        '+' | '=' => Action::Slower,
        '-' | '_' => Action::Faster,
        'w' => Action::NextWindow,
        'k' => Action::Up,
        'j' => Action::Down,
        'l' => Action::Right,
        'g' => Action::Home,
        'G' => Action::End,
        _ => return None,
    };
    Some(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn control_c_and_q_quit_in_every_view() {
        for view in View::ALL {
            assert_eq!(action(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), view), Some(Action::Quit));
            assert_eq!(action(press(KeyCode::Char('q')), view), Some(Action::Quit));
        }
    }

    #[test]
    fn h_is_help_except_where_left_leads_somewhere() {
        assert_eq!(action(press(KeyCode::Char('h')), View::Overview), Some(Action::Show(View::Help)));
        assert_eq!(action(press(KeyCode::Char('h')), View::Stages), Some(Action::Left));
        assert_eq!(action(press(KeyCode::Char('?')), View::Stages), Some(Action::Show(View::Help)));
    }

    #[test]
    fn a_release_or_an_unknown_key_means_nothing() {
        let mut key = press(KeyCode::Char('q'));
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key, View::Overview), None);
        assert_eq!(action(press(KeyCode::F(5)), View::Overview), None);
        assert_eq!(action(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT), View::Overview), None);
    }
}
