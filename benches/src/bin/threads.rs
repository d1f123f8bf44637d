//! One, two and eight threads at once: what a span costs each of them.

#![expect(clippy::print_stdout, reason = "a program that measures has to say what it found")]

use dflash_benches::at_once::{RING, at_once};
use dflash_benches::ours::{Fault, Recording, What};
use dflash_benches::peers;
use dflash_benches::subject::Subject;
use dflash_benches::table::{Form, ns, table};

const THREADS: [usize; 3] = [1, 2, 8];
const BURSTS: usize = 7;
/// The three numbers of threads follow each other this often, so that drift of the machine hits all of them.
const TURNS: usize = 3;

fn main() -> Result<(), Fault> {
    let recording = Recording::start(Some(RING))?;
    let stage = recording.subject(What::Stage);
    let peers = peers::recording()?;
    let mut subjects: Vec<&dyn Subject> = vec![&stage];
    subjects.extend(peers.iter().map(AsRef::as_ref));

    let rows: Vec<Vec<String>> = subjects.iter().map(|subject| row(*subject)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let header = ["", "1: ns a span", "2", "8", "8 by 1", "1: core-ns a span, all included", "2", "8", "8 by 1"];
    println!("Threads at once, on {cores} cores\n\n{}", table(Form::asked(), &header, &rows));
    let totals = recording.finish()?;
    println!("dflash: {} recorded, {} written, {} dropped", totals.emitted, totals.written, totals.dropped);
    if totals.dropped > 0 { Err("spans were dropped: the figures are not those of recording".into()) } else { Ok(()) }
}

fn row(subject: &dyn Subject) -> Vec<String> {
    let turns: Vec<_> = (0..TURNS).map(|_| THREADS.map(|threads| at_once(subject, threads, BURSTS))).collect();
    // The middle turn of each: three are few, but each is the median of many rounds.
    let middle = |of: &dyn Fn(usize) -> f64| {
        let mut values: Vec<f64> = (0..TURNS).map(of).collect();
        values.sort_by(f64::total_cmp);
        values[TURNS / 2]
    };
    let span: Vec<f64> = (0..THREADS.len()).map(|n| middle(&|turn| turns[turn][n].span_ns)).collect();
    let core: Vec<f64> = (0..THREADS.len()).map(|n| middle(&|turn| turns[turn][n].core_ns)).collect();
    let mut row = vec![subject.name().to_owned()];
    for values in [span, core] {
        row.extend(values.iter().map(|value| ns(*value)));
        row.push(format!("{:.2}", values[THREADS.len() - 1] / values[0]));
    }
    row
}
