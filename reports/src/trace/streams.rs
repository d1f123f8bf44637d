//! What ran on the devices: a track per stream. Of recordings that do not say on which stream a span ran, one per lane.

use super::content::{Content, RankContent, spans};
use super::counts::Counts;
use super::slices::{Fit, Item, Track};
use super::source::Piece;
use dflash_timeline::record::{LaneId, Span, StreamId};
use std::collections::BTreeMap;

/// How much later than its span a device time may begin before the host's next one is looked at, and be in order: the
/// clocks of device and host agree better than that.
const SLACK_NS: i64 = 1_000_000_000;

/// A stream's track in the making: pieces add to it, a format takes from it.
pub(super) struct StreamTrack {
    /// `stream 7: drafter:0, post:0`, after the lanes whose spans ran on it.
    pub name: String,
    /// Its device: an index into the rank's.
    pub device: usize,
    stream: Option<StreamId>,
    lanes: Vec<LaneId>,
    pub track: Track<Span>,
    /// Slots that the format has named.
    pub slots: usize,
}

/// Which track a span's device time stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Stream(i64, StreamId),
    Lane(LaneId),
}

/// The device of a lane's stream, and the stream's number if it is known.
fn place<'a>(content: &Content<'a>, lane: LaneId, stream: Option<StreamId>) -> Option<(&'a str, Option<i64>)> {
    match stream.and_then(|stream| content.timeline.stream(stream)) {
        Some(stream) => Some((&stream.device, Some(stream.number))),
        None => Some((&content.timeline.lane(lane)?.device, None)),
    }
}

/// The devices on which these lanes have device times.
pub(super) fn devices<'a>(content: &Content<'a>, lanes: &[LaneId]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for lane in lanes {
        let streams = content.source.reach.streams(*lane).iter();
        found.extend(streams.filter_map(|stream| Some(place(content, *lane, *stream)?.0)));
    }
    found
}

/// The rank's tracks, empty: by device, then by number; behind them those of which no stream is known.
pub(super) fn tracks(content: &Content<'_>, rank: &RankContent) -> Vec<StreamTrack> {
    let mut found: BTreeMap<(usize, Key), Vec<LaneId>> = BTreeMap::new();
    for lane in &rank.lanes {
        for stream in content.source.reach.streams(*lane) {
            let Some((device, number)) = place(content, *lane, *stream) else { continue };
            let Some(device) = rank.devices.iter().position(|known| known == device) else { continue };
            let key = match (number, stream) {
                (Some(number), Some(stream)) => Key::Stream(number, *stream),
                _ => Key::Lane(*lane),
            };
            let lanes = found.entry((device, key)).or_default();
            if lanes.last() != Some(lane) {
                lanes.push(*lane);
            }
        }
    }
    let track = |((device, key), lanes): ((usize, Key), Vec<LaneId>)| {
        let names: Vec<&str> =
            lanes.iter().filter_map(|lane| content.timeline.lane(*lane)).map(|lane| lane.name.as_str()).collect();
        let (name, stream) = match key {
            Key::Stream(number, stream) => (format!("stream {number}: {}", names.join(", ")), Some(stream)),
            Key::Lane(_) => (format!("stream of {}", names.join(", ")), None),
        };
        let track = Track::new(Fit::Nested, |_: &Span| 0, |_| false);
        StreamTrack { name, device, stream, lanes, track, slots: 0 }
    };
    found.into_iter().map(track).collect()
}

impl StreamTrack {
    /// Adds what begins in a piece.
    pub(super) fn add(&mut self, content: &Content<'_>, piece: &Piece<'_>, counts: &mut Counts) {
        let of_lane = |lane: &LaneId| spans(piece.timeline, *lane).iter();
        let mut items = Vec::new();
        for span in self.lanes.iter().flat_map(of_lane).filter(|span| piece.begins(span.begin_ns)) {
            // A stream that is not in the list of streams is not known.
            let its = span.device.filter(|device| known(content, device.stream) == self.stream);
            let item = its.and_then(|device| Item::new(device.begin_ns, device.duration_ns, *span, counts));
            items.extend(item.filter(|item| content.meets(item)));
        }
        self.track.add(items, piece.to_ns.map(|to| to.saturating_sub(SLACK_NS)));
    }
}

fn known(content: &Content<'_>, stream: Option<StreamId>) -> Option<StreamId> {
    stream.filter(|stream| content.timeline.stream(*stream).is_some())
}
