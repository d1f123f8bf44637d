//! Which key means what. The one place that knows keys; [`crate::state::State`] knows only what they mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::state::{Action, Control, Focus, View};

/// What a key press means while `focus` has the keys; `None` for a key without a meaning.
#[must_use]
pub fn action(key: KeyEvent, focus: Focus) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // In raw mode Ctrl-C is a key like any other: no signal comes.
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'C') => Some(Action::Interrupt),
            KeyCode::Char('z' | 'Z') => Some(Action::Suspend),
            KeyCode::Char('l') => Some(Action::Redraw),
            KeyCode::Char('u') if focus == Focus::Text => Some(Action::Back),
            KeyCode::Char('f') => Some(Action::PageDown),
            KeyCode::Char('b') => Some(Action::PageUp),
            _ => None,
        };
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    match (key.code, focus) {
        (KeyCode::Char(letter), Focus::View(view)) => character(letter, view),
        (KeyCode::Char(letter), _) => Some(Action::Type(letter)),
        (KeyCode::Backspace, Focus::Text) => Some(Action::Erase),
        (KeyCode::Enter, _) => Some(Action::Accept),
        (KeyCode::Esc, _) => Some(Action::Back),
        // While something is asked, keys that move would only confuse.
        (code, Focus::View(_)) => movement(code),
        _ => None,
    }
}

/// What the mouse means.
#[must_use]
pub fn mouse(event: MouseEvent) -> Option<Action> {
    match event.kind {
        MouseEventKind::ScrollDown => Some(Action::Down),
        MouseEventKind::ScrollUp => Some(Action::Up),
        MouseEventKind::Down(MouseButton::Left) => Some(Action::Click(event.column, event.row)),
        _ => None,
    }
}

fn movement(code: KeyCode) -> Option<Action> {
    match code {
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
        'h' if matches!(view, View::Stages | View::Timeline) => Action::Left,
        '?' | 'h' => Action::Show(View::Help),
        '1'..='9' => Action::Show(View::numbered(letter.to_digit(10)? as usize)?),
        'p' | ' ' => Action::Pause,
        '+' | '=' => Action::Slower,
        '-' | '_' => Action::Faster,
        'w' => Action::NextWindow,
        '[' => Action::Scrub(-1),
        ']' => Action::Scrub(1),
        '{' => Action::Scrub(-10),
        '}' => Action::Scrub(10),
        '<' => Action::SpeedDown,
        '>' => Action::SpeedUp,
        'z' | 'i' => Action::ZoomIn,
        'Z' | 'o' => Action::ZoomOut,
        's' => Action::SortNext,
        'S' => Action::SortPrevious,
        'r' => Action::Reverse,
        '/' => Action::Filter,
        'b' => Action::Baseline,
        'm' => Action::Mouse,
        'k' => Action::Up,
        'j' => Action::Down,
        'l' => Action::Right,
        'g' => Action::Home,
        'G' => Action::End,
        _ => return control(letter),
    };
    Some(action)
}

/// Capitals ask the run for something.
fn control(letter: char) -> Option<Action> {
    let control = match letter {
        'L' => Control::Level,
        'C' => Control::Cpu,
        'K' => Control::Kernels,
        'T' => Control::Stacks,
        'W' => Control::Checkpoint,
        'M' => Control::Mark,
        _ => return None,
    };
    Some(Action::Ask(control))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn control_c_quits_everywhere_and_q_where_it_is_no_letter() {
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for focus in View::ALL.map(Focus::View).into_iter().chain([Focus::Text, Focus::Question]) {
            assert_eq!(action(control_c, focus), Some(Action::Interrupt));
        }
        for view in View::ALL {
            assert_eq!(action(press(KeyCode::Char('q')), Focus::View(view)), Some(Action::Quit));
        }
        assert_eq!(action(press(KeyCode::Char('q')), Focus::Text), Some(Action::Type('q')));
    }

    #[test]
    fn keys_mean_what_they_mean_in_other_monitors() {
        use KeyCode::{BackTab, Char, Down, End, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};
        let views = View::ALL.into_iter().zip('1'..).map(|(view, key)| (Char(key), Action::Show(view)));
        let others = [
            (Esc, Action::Back),
            (Up, Action::Up),
            (Down, Action::Down),
            (Left, Action::Left),
            (Right, Action::Right),
            (Char('h'), Action::Left),
            (Char('j'), Action::Down),
            (Char('k'), Action::Up),
            (Char('l'), Action::Right),
            (PageUp, Action::PageUp),
            (PageDown, Action::PageDown),
            (Home, Action::Home),
            (End, Action::End),
            (Tab, Action::NextView),
            (BackTab, Action::PreviousView),
            (Char('s'), Action::SortNext),
            (Char('S'), Action::SortPrevious),
            (Char('r'), Action::Reverse),
            (Char('/'), Action::Filter),
            (Char('p'), Action::Pause),
            (Char(' '), Action::Pause),
            (Char('+'), Action::Slower),
            (Char('-'), Action::Faster),
            (Char('b'), Action::Baseline),
            (Char('m'), Action::Mouse),
        ];
        for (key, meaning) in views.chain(others) {
            assert_eq!(action(press(key), Focus::View(View::Stages)), Some(meaning), "{key:?}");
        }
    }

    #[test]
    fn h_is_help_except_where_left_leads_somewhere() {
        let h = |view| action(press(KeyCode::Char('h')), Focus::View(view));
        assert_eq!(h(View::Overview), Some(Action::Show(View::Help)));
        assert_eq!((h(View::Stages), h(View::Timeline)), (Some(Action::Left), Some(Action::Left)));
        assert_eq!(action(press(KeyCode::Char('?')), Focus::View(View::Stages)), Some(Action::Show(View::Help)));
    }

    #[test]
    fn a_release_or_an_unknown_key_means_nothing() {
        let overview = Focus::View(View::Overview);
        let mut key = press(KeyCode::Char('q'));
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key, overview), None);
        assert_eq!(action(press(KeyCode::F(5)), overview), None);
        assert_eq!(action(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT), overview), None);
        assert_eq!(action(press(KeyCode::Down), Focus::Question), None);
    }
}
