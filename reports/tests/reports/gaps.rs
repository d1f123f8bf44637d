//! Gaps between device spans, by rule and against a brute-force oracle.

use crate::support::{Builder, MS, on_gpu, two_streams};
use dflash_reports::gaps::{LaneGaps, gaps};
use dflash_reports::report::{Report, table};
use dflash_reports::stages::Window;
use dflash_reports::text::Look;
use dflash_reports::timeline::record::Kind;
use proptest::prelude::*;

fn all() -> Window {
    Window::default()
}

#[test]
fn no_gap_is_guessed_where_a_device_time_is_missing() {
    let found = gaps(&on_gpu().timeline, &all());
    assert_eq!(found[0].unknown, 27, "the steps that were not timed");
    // Forward ends after 6 ms, the step begins after 7: one gap in each of three iterations, one behind each of them.
    assert_eq!(found[0].gaps, 6);
    let b = Builder::new().lane_on("drafter:0", "cuda:0");
    let pass = |b: &mut Builder| {
        b.launched("drafter.forward", 3 * MS, 0, MS);
    };
    let b = b.iteration(Kind::Train, 0, pass).iteration(Kind::Bare, 9 * MS, |_| ()).iteration(Kind::Train, 0, pass);
    assert_eq!(gaps(&b.timeline, &all())[0].gaps, 0, "a bare iteration hides what its device did");
    assert!(gaps(&Builder::new().lane("drafter:0").timeline, &all()).is_empty());
}

#[test]
fn gaps_by_what_the_host_did() {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..2 {
        b = b.iteration(Kind::Train, 0, |b| {
            // Device: 2..4 ms and 8..10 ms of the iteration; between them the host waits in sync and launches.
            b.span("drafter.wait", 2 * MS).launched("drafter.forward", 3 * MS, 0, 2 * MS);
            b.nested("drafter.clip", MS, |b| {
                b.span("sync.norm", 2 * MS);
            });
            b.launched("drafter.step", 2 * MS, 0, 2 * MS);
        });
    }
    let found = gaps(&b.timeline, &all());
    let lane = &found[0];
    assert_eq!((lane.gaps, lane.total_ns, lane.device_ns), (3, 10 * MS, 8 * MS));
    assert_eq!((lane.input_ns, lane.room_ns, lane.sync_ns, lane.launch_ns), (2 * MS, 0, 4 * MS, 4 * MS));
    assert_eq!(lane.unknown, 0);
}

proptest! {
    /// A stream runs what it is given in order, as soon as it can; each nanosecond is asked what it was.
    #[test]
    fn gaps_agree_with_brute_force(passes in prop::collection::vec(prop::collection::vec((0_usize..5, 0_u64..12, 0_u64..12), 0..6), 1..5)) {
        const NAMES: [&str; 5] = ["a.wait", "a.put", "sync.x", "a.forward", "a.step"];
        let mut free = i64::MIN;
        let mut b = Builder::new().lane_on("a", "cuda:0");
        for pass in &passes {
            b = b.iteration(Kind::Train, 1, |b| for (name, host, device) in pass {
                if *name < 3 {
                    b.span(NAMES[*name], *host);
                    continue;
                }
                b.device_span(NAMES[*name], *host, *device);
                let time = b.timeline.spans.last_mut().unwrap().device.as_mut().unwrap();
                time.begin_ns = time.begin_ns.max(free);
                free = time.begin_ns + *device as i64;
            });
        }
        let spans = || b.timeline.spans.iter();
        let devices: Vec<(i64, i64)> =
            spans().filter_map(|s| s.device).map(|d| (d.begin_ns, d.begin_ns + d.duration_ns as i64)).collect();
        let Some(lane) = gaps(&b.timeline, &all()).pop() else {
            prop_assert!(devices.is_empty());
            return Ok(());
        };
        let mut expected = [0_u64; 4];
        for at in devices[0].0..devices[devices.len() - 1].1 {
            if !devices.iter().any(|(begin, end)| (*begin..*end).contains(&at)) {
                let host = spans().find(|s| (s.begin_ns..s.begin_ns + s.duration_ns as i64).contains(&at));
                let name = host.map_or("", |s| b.timeline.name(s.name));
                expected[NAMES.iter().position(|n| *n == name).unwrap_or(3).min(3)] += 1;
            }
        }
        prop_assert_eq!([lane.input_ns, lane.room_ns, lane.sync_ns, lane.launch_ns], expected);
        prop_assert_eq!(lane.total_ns, expected.iter().sum::<u64>());
    }
}

#[test]
fn without_a_capture_nothing_is_called_idle() {
    let text = table(&Report::of(&on_gpu().timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("device gaps") && !text.contains("idle"), "{text}");
}

/// Two streams at work at the same time: what is a gap on one of them is none on the other.
#[test]
fn each_stream_has_gaps_of_its_own() {
    let found = gaps(&two_streams().timeline, &all());
    let said = |g: &LaneGaps| (g.stream, g.device.clone(), g.gaps, g.total_ns / MS, g.device_ns / MS);
    let words: Vec<_> = found.iter().map(said).collect();
    // Each iteration takes 10 ms. Stream 0: 0..4 and 4..8. Stream 7: 2..9.
    assert_eq!(words, [(Some(0), "cuda:0".to_owned(), 2, 4, 24), (Some(7), "cuda:0".to_owned(), 2, 6, 21)]);
    let text = table(&Report::of(&two_streams().timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("drafter:0 stream 7"), "{text}");
}

/// What a recording does not say stays one stream, without a number.
#[test]
fn a_lane_of_one_stream_needs_no_number() {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..2 {
        b = b.iteration(Kind::Train, MS, |b| {
            b.device_span("drafter.forward", 4 * MS, 4 * MS).on_stream("cuda:0", 7);
        });
    }
    let found = gaps(&b.timeline, &all());
    assert_eq!((found.len(), found[0].stream, found[0].total_ns), (1, None, MS));
}
