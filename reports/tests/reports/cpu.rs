//! CPU samples: flame graphs, and what the report says of them.

use crate::support::Builder;
use dflash_reports::flamegraph::{Options, Time, folded_text, svg};
use dflash_reports::report::{Report, table};
use dflash_reports::stages::Window;
use dflash_reports::text::Look;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{LaneId, NameId, StackSample};

fn all() -> Window {
    Window::default()
}

fn sampled() -> Timeline {
    let mut timeline = Builder::new().lane("drafter:0").timeline;
    timeline.names =
        ["drafter.backward", "main", "at::mm; 3", "pt_autograd_0", "idle loop"].map(str::to_owned).to_vec();
    let stack = |lane: Option<u32>, spans: &[u32], frames: &[u32]| StackSample {
        time_ns: 5,
        tid: 7,
        thread: NameId(3),
        lane: lane.map(LaneId),
        iteration: None,
        spans: spans.iter().map(|id| NameId(*id)).collect(),
        frames: frames.iter().map(|id| NameId(*id)).collect(),
    };
    timeline.stacks = vec![stack(Some(0), &[0], &[1, 2]), stack(None, &[], &[4]), stack(Some(0), &[0], &[1, 2])];
    timeline
}

#[test]
fn cpu_samples_stand_below_lane_and_spans() {
    insta::assert_snapshot!(folded_text(&sampled(), &all(), Time::Cpu).unwrap(), @r"
    drafter:0;drafter.backward;main;at::mm:_3 2
    pt_autograd_0;idle_loop 1
    ");
    let options = Options { time: Time::Cpu, no_javascript: true, ..Options::default() };
    let text = String::from_utf8(svg(&sampled(), &options).unwrap()).unwrap();
    assert!(text.contains("<title>drafter.backward (2 samples, 66.67%)"), "{text}");
    let of_lane = Window { lanes: vec!["drafter:0".into()], ..all() };
    assert_eq!(folded_text(&sampled(), &of_lane, Time::Cpu).unwrap().lines().count(), 1);
}

#[test]
fn no_cpu_samples_is_said_with_the_way_out() {
    let error = folded_text(&Timeline::default(), &all(), Time::Cpu).unwrap_err().to_string();
    assert!(error.contains("no CPU sample was recorded") && error.contains("dflash ctl cpu"), "{error}");
    assert_eq!(Report::of(&Timeline::default(), &all()).unwrap().cpu_samples, None);
    let b = Builder::new().counter("cpu.samples", "samples", &[10.0, 950.0]).counter("cpu.rate", "Hz", &[97.5]);
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("950 samples taken, N/A lost, 97.5 a second"), "{text}");
}
