//! What a comparison costs, over four sizes. Printed, not judged: a loaded machine says what it likes.

use dflash_reports::diff::{Options, Select, Side, compare};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SIZES: [usize; 4] = [125_000, 250_000, 500_000, 1_000_000];
const LANES: [(&str, usize); 3] = [("loader", 4), ("target:0", 6), ("drafter:0", 10)];

/// A report of about so many rows: three lanes with 26 rows an iteration.
fn report(dir: &Path, name: &str, rows: usize) -> PathBuf {
    let mut text =
        "schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens\n".to_owned();
    let mut state = name.len() as u64 + 1;
    let mut wobble = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 500_000
    };
    for iteration in 0..rows / 26 {
        for (lane, stages) in LANES {
            let mut total = 1000;
            let mut row = |stage: &str, ns: u64| {
                let _ = writeln!(text, "1,1,0,{lane},cpu,{iteration},train,{stage},{},{ns},,", iteration * 60_000_000);
            };
            for stage in 0..stages {
                let ns = 5_000_000 + wobble();
                total += ns;
                row(&format!("{lane}.stage{stage}"), ns);
            }
            row("residue", 1000);
            row("total", total);
        }
    }
    let path = dir.join(format!("{name}{rows}.csv"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
#[ignore = "prints times: make diagnosis"]
fn diagnosis_of_cost() {
    let dir = tempfile::tempdir().unwrap();
    let pairs: Vec<_> =
        SIZES.iter().map(|rows| [report(dir.path(), "a", *rows), report(dir.path(), "bb", *rows)]).collect();
    let mut seconds = vec![Vec::new(); SIZES.len()];
    for _ in 0..7 {
        for (of_size, [a, b]) in seconds.iter_mut().zip(&pairs) {
            let begin = Instant::now();
            let sides = Side::read_both(std::slice::from_ref(a), std::slice::from_ref(b), &Select::default()).unwrap();
            compare(&sides.0, &sides.1, &Options::default()).unwrap();
            of_size.push(begin.elapsed().as_secs_f64());
        }
    }
    for (rows, times) in SIZES.iter().zip(&mut seconds) {
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[times.len() / 2]);
        println!(
            "2 × {rows} rows: median {median:.3} s, least {least:.3} s, {:.0} ns a row",
            median * 5e8 / *rows as f64
        );
    }
}

/// A million names in one iteration: an answer, in time that grows with the names and not with their square.
#[test]
#[ignore = "seconds: make diagnosis"]
fn diagnosis_of_a_million_names() {
    let dir = tempfile::tempdir().unwrap();
    let mut text =
        "schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens\n".to_owned();
    for stage in 0..1_000_000 {
        let _ = writeln!(text, "1,1,0,d,cpu,0,train,stage{stage},0,{},,", 1_000_000 + stage);
    }
    text += "1,1,0,d,cpu,0,train,total,0,1500000000,,\n";
    let path = dir.path().join("names.csv");
    std::fs::write(&path, text).unwrap();
    let begin = Instant::now();
    let side = Side::read(&[path]).unwrap();
    let comparison = compare(&side, &side, &Options::default()).unwrap();
    let length = comparison.csv().unwrap().len() + comparison.table(dflash_reports::text::Look::default()).len();
    println!("1,000,001 names: {:.1} s, {} MB of table and CSV", begin.elapsed().as_secs_f64(), length >> 20);
    assert_eq!(comparison.rows.len(), 1_000_001);
    assert!(comparison.headline().len() < 1000);
}
