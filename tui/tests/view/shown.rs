//! What a frame says once something was asked for: a question, a filter, a baseline, another moment.

use crate::frames::{LARGE, NO_COLOR, SMALL, USUAL, frame};
use crate::synthetic::Scene;
use dflash_reports::timeline::State as RunState;
use dflash_reports::timeline::record::{NameId, Stream, StreamId};
use dflash_tui::frame_text;
use dflash_tui::state::{Action, Control, Look, State, View, WindowLength};
use dflash_tui::view;
use dflash_tui::view::adapt::Charset;
use ratatui::buffer::Buffer;

#[test]
fn a_terminal_that_is_too_small_says_what_it_takes() {
    let text = frame_text(&frame(&mut Scene::pipeline().show(), (40, 10), NO_COLOR));
    assert_eq!(text, "60x15 needed\n40x10 here\nq quits\n");
}

#[test]
fn a_question_a_text_and_an_answer_stand_above_the_keys() {
    let mut state = Scene::pipeline().show();
    let foot = |state: &mut State| {
        let text = frame_text(&frame(state, SMALL, NO_COLOR));
        text.lines().nth(22).unwrap_or_default().trim().to_owned()
    };
    state.apply(Action::Ask(Control::Cpu));
    assert_eq!(foot(&mut state), "ask the run for CPU sampling for 30 s? y yes, n no");
    state.apply(Action::Type('n'));
    state.apply(Action::Ask(Control::Mark));
    for letter in "hot".chars() {
        state.apply(Action::Type(letter));
    }
    assert_eq!(foot(&mut state), "a note for the timeline: hot_   Enter takes it, Esc drops it");
    state.apply(Action::Accept);
    assert_eq!(foot(&mut state), "asking the run for mark ...");
}

#[test]
fn a_recording_that_has_stopped_is_said_with_its_reason() {
    let mut scene = Scene::pipeline();
    scene.manifest.trouble =
        Some("the timeline is no longer written: rank0-000001.dft: No space left on device".into());
    let text = frame_text(&frame(&mut scene.show(), USUAL, NO_COLOR));
    assert!(text.contains("INCOMPLETE"), "{text}");
    assert!(
        text.contains("the recording is incomplete: the timeline is no longer written: rank0-000001.dft: No"),
        "{text}"
    );
    let small = frame_text(&frame(&mut scene.show(), SMALL, NO_COLOR));
    assert!(small.contains("INCOMPLETE"), "{small}");
}

#[test]
fn a_baseline_adds_its_column() {
    let scene = Scene::pipeline();
    let mut state = scene.show_view(View::Stages);
    state.apply(Action::Baseline);
    let text = frame_text(&frame(&mut state, USUAL, NO_COLOR));
    assert!(text.contains("change") && text.contains("+0.0 %"), "{text}");
    state.apply(Action::Baseline);
    assert!(!frame_text(&frame(&mut state, USUAL, NO_COLOR)).contains("+0.0 %"));
}

#[test]
fn a_filter_leaves_only_what_it_names() {
    let scene = Scene::gpus(8);
    for (view, there, gone) in [
        (View::Overview, "drafter:3", "target:1"),
        (View::Stages, "drafter:3", "target:1"),
        (View::Timeline, "drafter:3", "target:1"),
        (View::Threads, "drafter:3", "target:1"),
    ] {
        let mut state = scene.show_view(view);
        state.filter = "Drafter".to_owned();
        let text = frame_text(&frame(&mut state, LARGE, NO_COLOR));
        let body: String = text.lines().skip(6).collect();
        assert!(body.contains(there) && !body.contains(gone), "{view:?}\n{text}");
    }
}

#[test]
fn ranks_are_told_apart() {
    let mut scene = Scene::gpus(2);
    scene.timeline.lanes[2].rank = 1;
    for counter in scene.timeline.counters.iter_mut().filter(|counter| counter.name.contains("cuda:1")) {
        counter.rank = 1;
    }
    for view in [View::Overview, View::Timeline] {
        let text = frame_text(&frame(&mut scene.show_view(view), USUAL, NO_COLOR));
        assert!(text.contains("target:0 ") && text.contains("drafter:0 r1"), "{text}");
    }
    let text = frame_text(&frame(&mut scene.show_view(View::Gpus), USUAL, NO_COLOR));
    assert!(text.contains("cuda:0 ") && text.contains("cuda:1 r1"), "{text}");
}

/// What was is shown as it was: nothing of what came later.
#[test]
fn a_recording_is_played_from_its_start() {
    let scene = Scene::pipeline().ended(RunState::Finished, true);
    let mut state = scene.show();
    state.apply(Action::Pause);
    assert!(state.is_playing());
    assert!(state.tick(std::time::Duration::from_secs(10)));
    scene.refresh(&mut state);
    assert!(state.played().is_some_and(|share| (0.24..0.26).contains(&share)));
    assert_eq!(state.model.covered.map(|covered| covered.as_secs()), Some(10));
    assert_eq!(state.model.events.len(), 1, "the marks after 10 s have not happened yet");
    assert!(state.model.lanes.iter().all(|lane| lane.inside.is_none()));
    let whole = scene.model(&Look { window: WindowLength::Whole, ..Look::default() });
    assert!(state.model.throughput.tokens < whole.throughput.tokens);
    assert!(state.tick(std::time::Duration::from_secs(100)));
    assert_eq!((state.at_ns, state.is_playing()), (None, false));
}

/// What lies far back is read by a thread of its own: the screen says so, and goes on.
#[test]
fn what_is_being_read_is_said() {
    let mut state = Scene::pipeline().ended(RunState::Finished, true).show();
    state.apply(Action::Scrub(-4));
    state.reading = true;
    let text = frame_text(&frame(&mut state, SMALL, NO_COLOR));
    assert!(text.lines().last().is_some_and(|keys| keys.contains("p READS at ")), "{text}");
}

#[test]
fn the_numbers_are_the_reports() {
    use dflash_reports::report::Report;
    use dflash_reports::stages::Window;

    let scene = Scene::gpus(8);
    let report = Report::of(&scene.timeline, &Window::default()).unwrap();
    let model = scene.model(&Look { window: WindowLength::Whole, ..Look::default() });
    assert_eq!(model.verdict, report.verdict_text);
    assert_eq!(model.throughput, report.throughput);
    assert_eq!(model.queues.iter().map(|queue| queue.row.clone()).collect::<Vec<_>>(), report.queues);
    let tables: Vec<_> = model.lanes.into_iter().filter_map(|lane| lane.table).collect();
    assert_eq!(tables, report.stages.lanes);
}

/// `cargo test --release -p dflash-tui -- --ignored --nocapture a_frame_is_drawn_fast`
#[test]
#[ignore = "prints figures of this machine"]
fn a_frame_is_drawn_fast() {
    let scene = Scene::gpus(64);
    for view in View::ALL {
        let state = scene.show_view(view);
        let mut times = Vec::new();
        for _ in 0..200 {
            let mut frame = Buffer::empty(ratatui::layout::Rect::new(0, 0, LARGE.0, LARGE.1));
            let began = std::time::Instant::now();
            view::draw(&state, &mut frame, Charset::default());
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let began = std::time::Instant::now();
        let model = scene.model(&state.look());
        let look = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "{:<9} {:.2} ms a frame (median), {:.2} ms (95 of 100); the numbers of {} lanes {look:.1} ms",
            view.title(),
            times[100],
            times[190],
            model.lanes.len()
        );
    }
}

/// Each stream of a lane has a line of its own; of one stream nobody needs the number.
#[test]
fn streams_are_told_apart() {
    let mut scene = Scene::gpus(1);
    let lines = |scene: &Scene| {
        let text = frame_text(&frame(&mut scene.show_view(View::Timeline), LARGE, NO_COLOR));
        let of_streams = |line: &&str| line.trim_start().starts_with("cuda:0");
        text.lines().filter(of_streams).map(str::to_owned).collect::<Vec<_>>()
    };
    let stream = |number| Stream { device: "cuda:0".to_owned(), number, rank: 0 };
    scene.timeline.streams = vec![stream(7), stream(0)];
    let loss = scene.timeline.names.iter().position(|name| name == "drafter.loss").map(|at| NameId(at as u32));
    for on_seven in [false, true] {
        for span in &mut scene.timeline.spans {
            let id = if Some(span.name) == loss && on_seven { StreamId(0) } else { StreamId(1) };
            span.device.iter_mut().for_each(|device| device.stream = Some(id));
        }
        let lines = lines(&scene);
        if on_seven {
            let [zero, seven] = lines.as_slice() else { panic!("{lines:?}") };
            assert!(zero.contains("cuda:0 stream 0") && zero.contains("backward") && !zero.contains("loss"), "{zero}");
            assert!(seven.contains("cuda:0 stream 7") && seven.contains("loss") && !seven.contains("back"), "{seven}");
        } else {
            assert!(matches!(lines.as_slice(), [one] if !one.contains("stream") && one.contains("loss")), "{lines:?}");
        }
    }
}
