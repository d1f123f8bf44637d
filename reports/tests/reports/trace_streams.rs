//! In a trace, each stream of a device has a track of its own below the device, whichever lanes worked on it.

use crate::support::{MS, on_gpu, two_streams};
use crate::trace_reader::read;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, LaneId};
use dflash_reports::trace::{Options, Source, chrome, perfetto};
use std::collections::BTreeMap;

fn options() -> Options {
    Options { name: "run".into(), ..Options::default() }
}

/// Two lanes: both use stream 0, the first one also stream 7.
fn shared() -> Timeline {
    let mut b = two_streams().lane_on("post:0", "cuda:0").at(100_000_000);
    for _ in 0..2 {
        b = b.iteration(Kind::Train, MS, |b| {
            b.device_span("post.pack", MS, MS).on_stream("cuda:0", 0);
        });
    }
    b.timeline
}

#[test]
fn streams_are_tracks_below_their_device() {
    let timeline = shared();
    let mut bytes = Vec::new();
    perfetto(&Source::memory(&timeline), &options(), &mut bytes).unwrap();
    let trace = read(&bytes);
    let on = |track: &str| -> BTreeMap<&str, (u64, u64)> {
        let below = format!("{track} < GPU 0 < rank 0: run");
        let its = trace.slices.iter().filter(|((on, _), _)| *on == below);
        its.map(|((_, name), (count, ns))| (name.as_str(), (*count, ns / MS))).collect()
    };
    let shared = [("drafter.backward", (3, 12)), ("drafter.forward", (3, 12)), ("post.pack", (2, 2))];
    assert_eq!(on("stream 0: drafter:0, post:0"), shared.into());
    assert_eq!(on("stream 7: drafter:0"), [("drafter.upload", (3, 21))].into());
    let all: u64 = trace.slices.iter().filter(|((on, _), _)| on.contains("GPU 0")).map(|(_, (count, _))| count).sum();
    assert_eq!(all, 11, "and nowhere else: {:?}", trace.slices.keys());
}

#[test]
fn chromes_form_has_a_thread_for_each() {
    let timeline = shared();
    let mut bytes = Vec::new();
    chrome(&Source::memory(&timeline), &options(), None, &mut bytes).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
    let named = |name: &str| {
        let is_its = |event: &&serde_json::Value| event["name"] == "thread_name" && event["args"]["name"] == name;
        let event = events.iter().find(is_its).unwrap_or_else(|| panic!("no thread {name}"));
        let on_it = |e: &&serde_json::Value| e["ph"] == "X" && e["pid"] == event["pid"] && e["tid"] == event["tid"];
        events.iter().filter(on_it).count()
    };
    assert_eq!([named("stream 0: drafter:0, post:0"), named("stream 7: drafter:0")], [8, 3]);
}

/// A recording that does not say on which stream what ran has one track per lane, as always; so has what a damaged file
/// says of a stream that nobody named.
#[test]
fn an_unknown_stream_is_its_lanes() {
    let mut damaged = two_streams().timeline;
    damaged.streams.clear();
    for timeline in [on_gpu().timeline, damaged] {
        let mut bytes = Vec::new();
        perfetto(&Source::memory(&timeline), &options(), &mut bytes).unwrap();
        let trace = read(&bytes);
        let device: u64 = trace
            .slices
            .iter()
            .filter(|((track, _), _)| track == "stream of drafter:0 < GPU 0 < rank 0: run" || track.contains("(2)"))
            .map(|(_, (count, _))| count)
            .sum();
        let timed = timeline.spans.iter().filter(|span| span.lane == LaneId(0) && span.device.is_some()).count();
        assert_eq!(device, timed as u64, "{:?}", trace.slices.keys());
    }
}
