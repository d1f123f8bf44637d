use super::*;

fn state() -> State {
    State::new(Model::default(), Duration::from_secs(1), WindowLength::Minute)
}

#[test]
fn escape_leaves_help_for_where_it_was_opened_and_quits_only_from_the_overview() {
    let mut state = state();
    state.apply(Action::Show(View::Stages));
    state.apply(Action::Show(View::Help));
    assert_eq!((state.apply(Action::Back), state.view), (Next::Draw, View::Stages));
    assert_eq!((state.apply(Action::Back), state.view), (Next::Draw, View::Overview));
    assert_eq!(state.apply(Action::Back), Next::Quit);
}

#[test]
fn tab_goes_round_both_ways() {
    let mut state = state();
    for expected in [View::Stages, View::Training, View::Help, View::Overview] {
        state.apply(Action::NextView);
        assert_eq!(state.view, expected);
    }
    state.apply(Action::PreviousView);
    assert_eq!(state.view, View::Help);
}

#[test]
fn the_interval_moves_in_steps_and_stops_at_the_ends() {
    let mut state = state();
    state.apply(Action::Faster);
    assert_eq!(state.interval, Duration::from_millis(500));
    for _ in 0..20 {
        state.apply(Action::Slower);
    }
    assert_eq!(state.interval, Duration::from_secs(60));
}

#[test]
fn scrolling_stops_at_both_ends_and_jumps_by_lane() {
    let mut state = state();
    state.drawn(Extent { page: 10, last: 30, lanes: vec![0, 8, 20] });
    for (action, line) in [
        (Action::Down, 1),
        (Action::PageDown, 10),
        (Action::Right, 20),
        (Action::Right, 20),
        (Action::Left, 8),
        (Action::End, 30),
        (Action::Down, 30),
        (Action::PageUp, 21),
        (Action::Home, 0),
        (Action::Up, 0),
    ] {
        state.apply(action);
        assert_eq!(state.scroll, line, "{action:?}");
    }
}

#[test]
fn a_smaller_frame_pulls_the_scroll_back() {
    let mut state = state();
    state.drawn(Extent { page: 10, last: 30, lanes: vec![] });
    state.apply(Action::End);
    state.drawn(Extent { page: 40, last: 0, lanes: vec![] });
    assert_eq!(state.scroll, 0);
}
