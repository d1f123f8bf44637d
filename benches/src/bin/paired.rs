//! Ours and each peer in alternating rounds: what a span costs, and whether the targets are reached.

#![expect(clippy::print_stdout, reason = "a program that measures has to say what it found")]

use dflash_benches::floor::{Empty, Reads};
use dflash_benches::ours::{Fault, Recording, What};
use dflash_benches::peers;
use dflash_benches::rounds::{above, alternate, ratio};
use dflash_benches::stats::{interval, spread};
use dflash_benches::subject::Subject;
use dflash_benches::table::{Form, ns, table};
use dflash_benches::targets::{Target, cheapest};

/// Of every subject; half a minute together.
const CYCLES: usize = 401;

/// Subjects and what they cost above the empty loop, by cycle.
struct Measured {
    names: Vec<&'static str>,
    rounds: Vec<Vec<f64>>,
}

fn main() -> Result<(), Fault> {
    let form = Form::asked();
    let recording = Recording::start(None)?;
    let ours = |what| recording.subject(what);

    let off = peers::off();
    let (our_off, reads, empty) = (ours(What::Off), Reads::new(), Empty);
    let mut subjects: Vec<&dyn Subject> = vec![&empty, &our_off];
    subjects.extend(off.iter().map(AsRef::as_ref));
    let while_off = measure(&subjects);

    let peers = peers::recording()?;
    let stage = ours(What::Stage);
    let mut subjects: Vec<&dyn Subject> = vec![&empty, &stage, &reads];
    subjects.extend(peers.iter().map(AsRef::as_ref));
    let on = measure(&subjects);

    let more =
        [What::Layer, What::Skipped, What::Iteration, What::Counter, What::Flow].map(|what| recording.subject(what));
    let mut subjects: Vec<&dyn Subject> = vec![&empty, &stage];
    subjects.extend(more.iter().map(|subject| subject as &dyn Subject));
    let inside = measure(&subjects);

    println!("Recording\n\n{}", costs(form, &on));
    println!("Off\n\n{}", costs(form, &while_off));
    println!("More of ours\n\n{}", costs(form, &inside));
    println!("Targets\n\n{}", targets(form, &on, &while_off));
    accounts(recording, &peers)
}

/// The first subject is the empty loop, the second is ours.
fn measure(subjects: &[&dyn Subject]) -> Measured {
    let rounds = alternate(subjects, CYCLES);
    let rounds = rounds.iter().skip(1).map(|of| above(of, &rounds[0])).collect();
    Measured { names: subjects.iter().skip(1).map(|subject| subject.name()).collect(), rounds }
}

fn costs(form: Form, measured: &Measured) -> String {
    let ours = spread(&measured.rounds[0]).median;
    let row = |(name, rounds): (&&str, &Vec<f64>)| {
        let (of, by) = (spread(rounds), interval(&ratio(rounds, &measured.rounds[0])));
        // Something that costs next to nothing divides nothing.
        let ratio =
            if ours < 1.0 { "-".to_owned() } else { format!("{:.2} ({:.2}-{:.2})", by.median, by.low, by.high) };
        vec![(*name).to_owned(), ns(of.median), format!("{}-{}", ns(of.p10), ns(of.p90)), ratio]
    };
    let rows: Vec<_> = measured.names.iter().zip(&measured.rounds).map(row).collect();
    table(form, &["", "ns", "p10-p90", "times ours (95 %)"], &rows)
}

fn targets(form: Form, on: &Measured, off: &Measured) -> String {
    let of = |name: &str| on.names.iter().position(|n| *n == name).map(|place| on.rounds[place].as_slice());
    let span = on.rounds[0].as_slice();
    let reads: Vec<f64> = of("two raw clock reads").unwrap_or_default().iter().map(|ns| 1.3 * ns + 5.0).collect();
    let rivals: Vec<&[f64]> = ["tracing-chrome", "fastrace", "puffin"].into_iter().filter_map(of).collect();
    let half: Vec<f64> = cheapest(&rivals).iter().map(|ns| ns / 2.0).collect();
    let mut targets = vec![
        Target::new("on: at most 1.3 x two raw clock reads + 5 ns", span, &reads),
        Target::new("on: twice as fast as the fastest of tracing-chrome, fastrace, puffin", span, &half),
    ];
    if let Some(tracy) = of("tracy-client") {
        let allowed: Vec<f64> = tracy.iter().map(|ns| 1.2 * ns).collect();
        targets.push(Target::new("on: at most 1.2 x tracy-client", span, &allowed));
    }
    targets.push(Target::new("off: at most 0.3 ns", &off.rounds[0], &vec![0.3; off.rounds[0].len()]));
    let row = |t: &Target| {
        let used = format!("{:.2} ({:.2}-{:.2})", t.used.median, t.used.low, t.used.high);
        vec![t.says.clone(), used, t.verdict().to_owned()]
    };
    table(form, &["", "measured / allowed (95 %)", ""], &targets.iter().map(row).collect::<Vec<_>>())
}

/// Everyone must have recorded everything, or was measured while it did less than its work.
fn accounts(recording: Recording, peers: &[Box<dyn Subject>]) -> Result<(), Fault> {
    let totals = recording.finish()?;
    println!("dflash: {} recorded, {} written, {} dropped", totals.emitted, totals.written, totals.dropped);
    let mut lost = totals.dropped + totals.misplaced;
    for (peer, account) in peers.iter().filter_map(|peer| Some((peer, peer.account()?))) {
        println!("{}: {} recorded, {} arrived", peer.name(), account.made, account.arrived);
        lost += account.made.abs_diff(account.arrived);
    }
    if lost > 0 {
        Err(format!("{lost} records are missing: not every figure above is that of recording").into())
    } else {
        Ok(())
    }
}
