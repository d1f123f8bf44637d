//! Flame graphs for other viewers, by device, and of changes.

use crate::changes::{bare, picture, titles, wall};
use crate::support::{Builder, MS, on_gpu, small_run, two_streams};
use dflash_reports::flamegraph::{By, Change, Graph, Options, Time, svg};
use dflash_reports::gaps::gaps;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, Lane, NameId, StackSample};
use dflash_reports::window::Window;

fn all() -> Window {
    Window::default()
}

#[test]
fn a_streams_time_and_its_gaps_are_those_of_the_report() {
    let timeline = on_gpu().timeline;
    let folded = Graph::of(&timeline, &all(), Time::Device, By::Lane).unwrap().folded();
    let gap = |cause: &str| folded.get(&format!("drafter:0;gap;{cause}")).copied().unwrap_or(0);
    let report = &gaps(&timeline, &all())[0];
    assert!(report.input_ns > 0 && report.launch_ns > 0, "{report:?}");
    let told = [report.input_ns, report.room_ns, report.sync_ns, report.launch_ns];
    assert_eq!(
        ["waiting for input", "waiting for room", "sync", "launch-bound"].map(|c| c.replace(' ', "_")).map(|c| gap(&c)),
        told
    );
    assert_eq!(folded["drafter:0;drafter.forward"], 30 * 5 * MS);
    assert_eq!(folded["drafter:0;drafter.step"], 3 * MS, "timed in each tenth iteration");
    assert_eq!(folded.values().sum::<u64>(), report.device_ns + report.total_ns);
    let error = Graph::of(&small_run(), &all(), Time::Device, By::Lane).unwrap_err().to_string();
    assert!(error.starts_with("no device time was recorded; ") && error.contains("--time wall"), "{error}");
}

/// Each stream has its own time below its lane, with its own gaps: together they are what the report says.
#[test]
fn a_lane_of_two_streams_has_a_frame_for_each() {
    let timeline = two_streams().timeline;
    let folded = Graph::of(&timeline, &all(), Time::Device, By::Lane).unwrap().folded();
    let of = |stack: &str| folded.get(&format!("drafter:0;{stack}")).copied().unwrap_or(0) / MS;
    assert_eq!([of("stream_0;drafter.forward"), of("stream_0;drafter.backward")], [12, 12], "{folded:?}");
    assert_eq!([of("stream_7;drafter.upload"), of("stream_7;drafter.forward")], [21, 0]);
    let report = gaps(&timeline, &all());
    assert_eq!(of("stream_0;gap;launch-bound"), report[0].launch_ns / MS);
    assert_eq!(of("stream_7;gap;launch-bound"), report[1].launch_ns / MS);
    assert_eq!(folded.values().sum::<u64>(), report.iter().map(|gaps| gaps.device_ns + gaps.total_ns).sum::<u64>());
    // An iteration counts once, so that a comparison with itself shows no change.
    let graph = Graph::of(&timeline, &all(), Time::Device, By::Lane).unwrap();
    let (base, run) = Change::between(&graph, &graph).totals();
    assert_eq!(base, run);
}

/// A stream of another device than the lane's says so.
#[test]
fn a_stream_elsewhere_is_called_after_its_device() {
    let b = Builder::new().lane_on("target:0", "cuda:0").iteration(Kind::Train, 0, |b| {
        b.device_span("target.forward", MS, MS).on_stream("cuda:0", 0);
        b.nested("target.copy", MS, |b| {
            b.device_span("target.peer", MS, MS).on_stream("cuda:1", 3);
        });
    });
    let folded = Graph::of(&b.timeline, &all(), Time::Device, By::Lane).unwrap().folded();
    let stacks: Vec<&str> = folded.keys().map(String::as_str).collect();
    assert_eq!(
        stacks,
        ["target:0;stream_0;target.forward", "target:0;stream_3_of_cuda:1;target.copy;target.peer"],
        "{folded:?}"
    );
}

/// More gaps than are kept at once: what is accounted for early counts as what is accounted for at the end.
#[test]
fn gaps_of_a_long_run_add_up() {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..6000 {
        b = b.iteration(Kind::Train, 0, |b| {
            b.span("drafter.wait", 3 * MS).launched("drafter.forward", 2 * MS, 0, 4 * MS).span("drafter.put", MS);
        });
    }
    let found = &gaps(&b.timeline, &all())[0];
    assert_eq!((found.gaps, found.total_ns), (5999, 5999 * 2 * MS));
    assert_eq!((found.input_ns, found.room_ns, found.launch_ns), (5999 * 2 * MS, 0, 0));
}

#[test]
fn lanes_of_one_role_stand_together() {
    let mut b = Builder::new();
    for lane in ["target:0", "target:1"] {
        b = b.lane(lane).iteration(Kind::Train, 0, |b| {
            b.span("target.forward", MS);
        });
    }
    let mut timeline = b.timeline;
    timeline.lanes.push(Lane { name: "target:0".into(), device: "cpu".into(), rank: 3 });
    let again = timeline.iterations[0];
    timeline.iterations.push(dflash_reports::timeline::record::Iteration {
        lane: dflash_reports::timeline::record::LaneId(2),
        ..again
    });
    let folded = |by| Graph::of(&timeline, &all(), Time::Wall, by).unwrap().folded().into_keys().collect::<Vec<_>>();
    assert_eq!(folded(By::Lane), ["rank3/target:0;residue", "target:0;target.forward", "target:1;target.forward"]);
    assert_eq!(folded(By::Rank), ["rank0;target;target.forward", "rank3;target;residue"]);
    assert_eq!(folded(By::Merged), ["target;residue", "target;target.forward"]);
    let rank = Window { ranks: vec![3], ..all() };
    assert_eq!(Graph::of(&timeline, &rank, Time::Wall, By::Lane).unwrap().total(), MS);
}

/// `a.b` sorts between `a` and `a;c` as text; `a` must still be one frame.
#[test]
fn a_frame_is_drawn_in_one_piece() {
    let b = Builder::new().lane("x").iteration(Kind::Train, 0, |b| {
        b.nested("a", 5 * MS, |b| {
            b.span("c", MS);
        });
        b.span("a.b", MS).span("a!", MS);
    });
    let svg = picture(svg(&b.timeline, &bare()).unwrap());
    assert_eq!(titles(&svg, "a ("), ["a (6,000 µs, 75.00%)"]);
}

#[test]
fn speedscope_finds_what_its_format_asks_for() {
    let graph = wall(&hostile());
    let mut bytes = Vec::new();
    graph.write_speedscope("a \"run\" <script>", &mut bytes).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    let profile = &file["profiles"][0];
    assert_eq!((profile["type"].as_str(), profile["unit"].as_str()), (Some("sampled"), Some("nanoseconds")));
    let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
    assert_eq!(samples.len(), weights.len());
    assert_eq!(weights.iter().map(|w| w.as_u64().unwrap()).sum::<u64>(), graph.total());
    assert_eq!(profile["endValue"].as_u64(), Some(graph.total()));
    let indices = samples.iter().flat_map(|stack| stack.as_array().unwrap()).map(|at| at.as_u64().unwrap() as usize);
    let named: Vec<&str> = indices.map(|at| frames[at]["name"].as_str().unwrap()).collect();
    assert!(HOSTILE.iter().all(|name| named.contains(name)), "names as they are: {named:?}");
}

/// Names that somebody could stumble over.
pub const HOSTILE: [&str; 6] =
    ["a;b", "layer 3", "say \"x\" 'y'", "<script>alert(1)</script>", "\u{1b}[31mred\u{7}", "tail 17"];

/// A lane with spans of those names.
pub fn hostile() -> Timeline {
    let b = Builder::new().lane("lane").iteration(Kind::Train, 1, |b| {
        for name in HOSTILE {
            b.span(name, MS);
        }
    });
    b.timeline
}

#[test]
fn hostile_names_stay_names() {
    let timeline = hostile();
    let svg = picture(svg(&timeline, &Options::default()).unwrap());
    assert!(!svg.contains("<script>alert") && !svg.contains('\u{1b}') && !svg.contains('\u{7}'));
    let folded = wall(&timeline).folded();
    assert_eq!(folded.len(), HOSTILE.len() + 1, "{folded:?}");
    assert!(folded.keys().all(|stack| stack.split(';').count() == 2 && !stack.contains([' ', '\u{1b}'])), "{folded:?}");
    let against = picture(Change::between(&wall(&timeline), &wall(&timeline)).svg(&Options::default()).unwrap());
    assert!(!against.contains("<script>alert") && titles(&against, "tail_17 (").len() == 1);
}

/// Stacks of functions, `depth` deep, each under names of its own.
fn sampled(stacks: usize, depth: usize) -> Timeline {
    let mut timeline = Timeline::default();
    for stack in 0..stacks {
        let first = timeline.names.len() as u32;
        timeline.names.extend((0..depth).map(|at| format!("function_{stack}_{at}")));
        timeline.stacks.push(StackSample {
            time_ns: stack as i64,
            tid: 1,
            thread: NameId(0),
            lane: None,
            iteration: None,
            spans: Vec::new(),
            frames: (first..first + depth as u32).map(NameId).collect(),
        });
    }
    timeline
}

fn every_form_of(stacks: usize, depth: usize) {
    let timeline = sampled(stacks, depth);
    let graph = Graph::of(&timeline, &all(), Time::Cpu, By::Lane).unwrap();
    let folded = graph.folded();
    assert_eq!((graph.total(), folded.len()), (stacks as u64, stacks));
    let deepest = folded.keys().map(|stack| stack.split(';').count()).max();
    assert_eq!(deepest, Some(depth + 1), "below the thread's name");
    let svg = graph.svg(&bare()).unwrap();
    assert!(svg.len() < 4 << 20, "{} bytes: what nobody could see is not drawn", svg.len());
    assert!(titles(&picture(svg), "all (")[0].contains("samples, 100%"));
    let change = Change::between(&graph, &graph);
    assert!(!change.svg(&bare()).unwrap().is_empty());
    let mut sizes = [0, 0];
    graph.write_speedscope("x", &mut Counting(&mut sizes[0])).unwrap();
    graph.write_pprof(&mut Counting(&mut sizes[1])).unwrap();
    assert!(sizes.iter().all(|size| *size > 0));
}

#[test]
fn two_thousand_frames_deep_and_many_names_wide() {
    every_form_of(3, 2000);
    every_form_of(30_000, 2);
}

#[test]
#[ignore = "minutes without optimisation"]
fn a_million_names() {
    every_form_of(500_000, 2);
}

struct Counting<'a>(&'a mut usize);

impl std::io::Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        *self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
