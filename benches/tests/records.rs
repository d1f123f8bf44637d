//! No peer is measured while it is off, or drops: everything that a round makes comes out at its other end.

use dflash_benches::at_once::{RING, at_once};
use dflash_benches::floor::{Empty, Reads};
use dflash_benches::ours::{Recording, What};
use dflash_benches::peers;
use dflash_benches::rounds::alternate;
use dflash_benches::stream;
use dflash_benches::subject::{SPANS, Subject};

const CYCLES: usize = 3;

/// One test: subscribers, scopes and levels are the process's.
#[test]
fn everyone_records_what_it_is_asked_to() {
    let off = peers::off();
    assert!(tracing::info_span!("before").is_disabled(), "nobody listens yet");
    let rounds = alternate(&off.iter().map(AsRef::as_ref).collect::<Vec<_>>(), CYCLES);
    assert!(rounds.iter().flatten().all(|ns| ns.is_finite()));

    let recording = Recording::start(Some(RING)).unwrap();
    let whats = [What::Stage, What::Layer, What::Skipped, What::Off, What::Iteration, What::Counter, What::Flow];
    let ours = whats.map(|what| recording.subject(what));
    let peers = peers::recording().unwrap();
    let (empty, reads) = (Empty, Reads::new());
    let mut subjects: Vec<&dyn Subject> = vec![&empty, &reads];
    subjects.extend(peers.iter().map(AsRef::as_ref));
    subjects.extend(ours.iter().map(|subject| subject as &dyn Subject));

    let rounds = alternate(&subjects, CYCLES);
    assert!(rounds.iter().all(|of| of.len() == CYCLES && of.iter().all(|ns| ns.is_finite())));
    let stage = recording.subject(What::Stage);
    for subject in peers.iter().map(AsRef::as_ref).chain([&stage as &dyn Subject]) {
        assert!(at_once(subject, 2, 1).span_ns.is_finite(), "{}", subject.name());
    }
    let accounts: Vec<_> = peers.iter().filter_map(|peer| Some((peer.name(), peer.account()?))).collect();
    assert!(accounts.len() >= 3, "{accounts:?}");
    for (name, account) in accounts {
        assert!(account.made > CYCLES as u64 * u64::from(SPANS), "{name}: {account:?}");
        assert_eq!(account.made, account.arrived, "{name}");
    }
    assert!(peers::Registry::new().holds_open_spans());
    let totals = recording.finish().unwrap();
    assert_eq!((totals.dropped, totals.misplaced, totals.written), (0, 0, totals.emitted));
    // Stages, layers, iterations, readings and hand-offs, and nothing of what is off or left out.
    assert!(totals.emitted > 5 * CYCLES as u64 * u64::from(SPANS));
}

#[test]
fn the_streams_are_read_as_they_were_written() {
    for device in [false, true] {
        let records = stream::stream(3, device);
        let plain = [stream::timeline(&records), stream::fixed(&records), stream::json_lines(&records)];
        for stored in plain {
            assert!(stored.unwrap().bytes > stream::count(&records).1);
        }
    }
}
