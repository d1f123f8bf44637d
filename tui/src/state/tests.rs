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
    for expected in View::ALL.into_iter().cycle().skip(1).take(View::ALL.len()) {
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
    state.drawn(Extent { page: 10, last: 30, lanes: vec![0, 8, 20], ..Extent::default() });
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
    state.drawn(Extent { page: 10, last: 30, ..Extent::default() });
    state.apply(Action::End);
    state.drawn(Extent { page: 40, last: 0, ..Extent::default() });
    assert_eq!(state.scroll, 0);
}

fn live() -> State {
    let mut state = state();
    state.model.run.liveness = Liveness::Alive;
    state
}

fn type_in(state: &mut State, text: &str) {
    for letter in text.chars() {
        state.apply(Action::Type(letter));
    }
}

#[test]
fn nothing_is_asked_of_the_run_before_it_is_confirmed() {
    let mut state = live();
    state.apply(Action::Ask(Control::Kernels));
    assert_eq!((state.focus(), state.take_wanted()), (Focus::Question, None));
    state.apply(Action::Accept);
    assert_eq!(state.take_wanted(), None, "Enter confirms nothing");
    state.apply(Action::Type('y'));
    assert_eq!((state.take_wanted(), state.take_wanted()), (Some(Command::Kernels), None));
    state.apply(Action::Ask(Control::Checkpoint));
    state.apply(Action::Type('n'));
    assert_eq!((state.prompt.clone(), state.take_wanted()), (None, None));
    state.apply(Action::Ask(Control::Level));
    state.apply(Action::Type('l'));
    assert_eq!(state.take_wanted(), Some(Command::Level("layers")));
}

#[test]
fn a_mark_is_typed_and_an_empty_one_is_none() {
    let mut state = live();
    state.apply(Action::Ask(Control::Mark));
    type_in(&mut state, "q 目x");
    state.apply(Action::Erase);
    state.apply(Action::Accept);
    assert_eq!(state.take_wanted(), Some(Command::Mark("q 目".to_owned())));
    state.apply(Action::Ask(Control::Mark));
    state.apply(Action::Accept);
    assert_eq!(state.take_wanted(), None);
}

#[test]
fn a_run_on_another_host_is_read_only() {
    let mut state = state();
    (state.model.run.liveness, state.model.run.host) = (Liveness::Remote, "gpu-7".to_owned());
    state.apply(Action::Ask(Control::Stacks));
    assert_eq!(state.prompt, None);
    assert_eq!(state.notice.map(|notice| notice.text), Some("read only: the trainer runs on gpu-7".to_owned()));
}

#[test]
fn escape_closes_the_innermost_first() {
    let mut state = live();
    state.apply(Action::Filter);
    type_in(&mut state, "loss");
    state.apply(Action::Accept);
    state.open("Stacks", vec!["a".to_owned()]);
    state.apply(Action::Ask(Control::Cpu));
    let open = |state: &State| (state.prompt.is_some(), state.panel.is_some(), !state.filter.is_empty());
    for expected in [(false, true, true), (false, false, true), (false, false, false)] {
        assert_eq!(state.apply(Action::Back), Next::Draw);
        assert_eq!(open(&state), expected);
    }
    assert_eq!(state.apply(Action::Back), Next::Quit);
}

#[test]
fn sorting_goes_round_and_each_view_keeps_its_own() {
    let mut state = state();
    state.apply(Action::Show(View::Threads));
    state.apply(Action::SortPrevious);
    assert_eq!(state.sorted_by(View::Threads), Some("in span"));
    state.apply(Action::Reverse);
    assert!(state.is_reversed(View::Threads));
    state.apply(Action::SortNext);
    assert_eq!((state.sorted_by(View::Threads), state.is_reversed(View::Threads)), (Some("CPU"), false));
    state.apply(Action::Show(View::Help));
    state.apply(Action::SortNext);
    assert_eq!(state.sorted_by(View::Overview), Some("usual"));
}

#[test]
fn a_tab_is_clicked() {
    let mut state = state();
    state.drawn(Extent { tabs: vec![(View::Stages, 10, 13), (View::Help, 13, 16)], ..Extent::default() });
    state.apply(Action::Click(13, 0));
    assert_eq!(state.view, View::Help);
    state.apply(Action::Click(12, 1));
    assert_eq!(state.view, View::Help, "the tabs stand in the first line");
}

#[test]
fn moving_through_a_live_run_holds_it_still() {
    let mut state = live();
    state.model.extent_ns = Some((0, 60_000_000_000));
    state.apply(Action::Scrub(-1));
    assert_eq!((state.paused, state.at_ns), (true, Some(57_000_000_000)));
    state.apply(Action::Scrub(-100));
    assert_eq!(state.at_ns, Some(0));
    state.apply(Action::Pause);
    assert_eq!((state.paused, state.at_ns), (false, None));
}

#[test]
fn playing_goes_at_its_speed_and_can_be_held() {
    let mut state = state();
    state.model.extent_ns = Some((0, 100_000_000_000));
    state.apply(Action::Pause);
    state.apply(Action::SpeedUp);
    assert!(state.tick(Duration::from_secs(5)));
    assert_eq!(state.at_ns, Some(10_000_000_000));
    state.apply(Action::Pause);
    assert!(!state.tick(Duration::from_secs(5)), "it is held still");
    state.apply(Action::Scrub(10));
    assert_eq!(state.at_ns, Some(40_000_000_000));
}
