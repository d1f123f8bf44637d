//! How fast the timing stream is written and read, and how many bytes a span takes in it.

#![expect(clippy::print_stdout, reason = "a program that measures has to say what it found")]

use std::time::Duration;

use dflash_benches::ours::Fault;
use dflash_benches::stats::spread;
use dflash_benches::stream::{Record, Stored, count, fixed, json_lines, stream, timeline};
use dflash_benches::table::{Form, table};

/// A bit more than three minutes of training.
const BLOCKS: u64 = 800;
const TURNS: usize = 9;

type Way = (&'static str, fn(&[Record]) -> Result<Stored, Fault>);
const WAYS: [Way; 3] = [("dflash's timeline", timeline), ("80 fixed bytes a span", fixed), ("JSON lines", json_lines)];

fn main() -> Result<(), Fault> {
    let mut rows = Vec::new();
    for (device, what) in [(false, "host times"), (true, "with device times")] {
        let records = stream(BLOCKS, device);
        let mut turns: Vec<Vec<Stored>> = vec![Vec::new(); WAYS.len()];
        // In alternation, so that a machine that slows down does so for all.
        for _ in 0..TURNS {
            for (way, turns) in WAYS.iter().zip(&mut turns) {
                turns.push(way.1(&records)?);
            }
        }
        rows.extend(WAYS.iter().zip(&turns).map(|((name, _), turns)| row(&format!("{name}, {what}"), turns, &records)));
    }
    let header = ["", "written M records/s", "p10-p90", "read M records/s", "p10-p90", "bytes a span, all included"];
    println!("{}", table(Form::asked(), &header, &rows));
    println!(
        "Written by one thread; read by wall time, whatever threads the reader uses, sorted and with texts resolved."
    );
    println!("dflash's streams hold counters, hand-offs, iterations and open spans, too; the others hold spans alone.");
    Ok(())
}

fn row(name: &str, turns: &[Stored], records: &[Record]) -> Vec<String> {
    let (all, spans) = count(records);
    let stored = if name.starts_with("dflash") { all } else { spans };
    let rate = |of: fn(&Stored) -> Duration| {
        let rates: Vec<f64> = turns.iter().map(|turn| stored as f64 / of(turn).as_secs_f64() / 1e6).collect();
        let rates = spread(&rates);
        [format!("{:.1}", rates.median), format!("{:.1}-{:.1}", rates.p10, rates.p90)]
    };
    let bytes = turns.first().map_or(0, |turn| turn.bytes) as f64 / spans as f64;
    let mut row = vec![name.to_owned()];
    row.extend(rate(|turn| turn.write));
    row.extend(rate(|turn| turn.read));
    row.push(format!("{bytes:.1}"));
    row
}
