//! Several runs and ranks: where each stands on the common clock, and who holds the others up.

use super::{Section, share};
use crate::report::Report;
use crate::sources::Place;
use crate::stragglers::Peer;
use crate::text::{UNKNOWN, grouped, harmless, milliseconds};

/// Nothing at all of a single run.
pub(super) fn places(report: &Report) -> Option<Section> {
    if report.places.is_empty() {
        return None;
    }
    let headings = vec!["run", "host", "ranks", "its own", "clock ms"];
    let rows = report.places.iter().map(place_row).collect();
    let mut notes = vec!["clock: what was added to the run's times to place them on the first run's clock".to_owned()];
    let unaligned = report.places.iter().filter(|place| !place.aligned).count();
    if unaligned > 0 {
        notes.push(format!(
            "warning: {unaligned} of the runs have no clock anchor: their times cannot be compared with the others'"
        ));
    }
    Some(Section { title: "runs".into(), names: 4, headings, rows, notes })
}

fn place_row(place: &Place) -> Vec<String> {
    let list = |less: u32| {
        let ranks = place.ranks.iter().map(|rank| rank.saturating_sub(less).to_string()).collect::<Vec<_>>();
        if ranks.is_empty() { UNKNOWN.to_owned() } else { ranks.join(", ") }
    };
    let clock = if place.aligned { format!("{:+.3}", place.shift_ns as f64 / 1e6) } else { UNKNOWN.into() };
    vec![harmless(&place.run), harmless(&place.host), list(0), list(place.first_rank), clock]
}

/// Nothing at all where each role has one lane.
pub(super) fn peers(report: &Report) -> Option<Section> {
    if report.peers.is_empty() {
        return None;
    }
    let headings = vec!["lane", "rank", "device", "own work p50 ms", "against the others", "slowest in", ""];
    let mut notes = vec![
        "own work: an iteration without what it waited (*.wait, *.put, *.reduce, sync.*), over those that all have"
            .to_owned(),
    ];
    let named = report.peers.iter().filter(|peer| peer.straggler).map(straggler);
    notes.extend(named);
    let rows = report.peers.iter().map(peer_row).collect();
    Some(Section { title: "lanes of one role".into(), names: 3, headings, rows, notes })
}

/// The straggler as a sentence.
fn straggler(peer: &Peer) -> String {
    format!(
        "straggler: {} of rank {} does {:.0} % more work than the others, and is the slowest in {} of the iterations",
        harmless(&peer.lane),
        peer.rank,
        peer.excess * 100.0,
        share(peer.slowest, peer.iterations)
    )
}

fn peer_row(peer: &Peer) -> Vec<String> {
    let common = peer.iterations > 0;
    let known = |text: String| if common { text } else { UNKNOWN.to_owned() };
    vec![
        harmless(&peer.lane),
        peer.rank.to_string(),
        harmless(&peer.device),
        known(milliseconds(peer.own_p50_ns as f64)),
        known(format!("{:+.1} %", peer.excess * 100.0)),
        known(format!("{} of {}", grouped(peer.slowest), grouped(peer.iterations))),
        if peer.straggler { "straggler".into() } else { String::new() },
    ]
}
