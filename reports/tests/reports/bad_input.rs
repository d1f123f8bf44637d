//! Bad input to the comparison: one clear error each, with file, line, column and the way out.

use crate::support::{iterations_csv, times};
use dflash_reports::diff::{Options, Side, compare};
use std::path::PathBuf;

fn error_of(name: &str, text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let error = Side::read(&[path]).unwrap_err().to_string();
    error.replace(&dir.path().display().to_string(), "DIR")
}

const ITERATIONS: &str = "schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens\n";
const STAGES: &str = "rank,lane,stage,depth,iterations,host_p50_ns\n";

#[test]
fn of_iterations() {
    let row = |iteration: &str, stage: &str, ns: &str| format!("1,1,0,d,cpu,{iteration},train,{stage},0,{ns},,\n");
    let of = |rows: &[String]| error_of("i.csv", &(ITERATIONS.to_owned() + &rows.concat()));
    let ordered = of(&[row("1", "total", "5"), row("0", "total", "5")]);
    assert_eq!(ordered, "DIR/i.csv:3: column `iteration`: 0 follows 1; sort the rows by iteration");
    let twice = of(&[row("1", "total", "5"), row("1", "total", "6")]);
    assert_eq!(twice, "DIR/i.csv:3: column `stage`: a second row `total` of iteration 1; remove one");
    for bad in ["NaN", "-5", "inf", "1,5", "1.5"] {
        let error = of(&[row("0", "total", bad), row("1", "total", "5")]);
        assert!(error.starts_with("DIR/i.csv:2:"), "{bad}: {error}");
    }
    let comma = of(&[row("0", "total", "1,5")]);
    let expected = "column `tokens`: 13 fields where the header has 12; decimals take a point, and a text with a comma \
                    takes quotes";
    assert_eq!(comma, format!("DIR/i.csv:2: {expected}"));
    let short = of(&[row("0", "total", "5"), "1,1,0,d,cpu,1,train,total\n".into(), row("2", "total", "5")]);
    assert_eq!(short, "DIR/i.csv:3: column `start_ns`: 8 fields where the header has 12; its field is missing");
    let blank = of(&[row("0", "total", "5"), "\n".into(), row("1", "total", "5")]);
    assert_eq!(blank, "DIR/i.csv:3: column `all`: the line is empty; remove it");
    assert!(of(&["1,1,0,,cpu,0,train,total,0,5,,\n".into()]).contains("2: column `lane`: `` is not a lane's name"));
    let gap = of(&[row("0", "total", "5"), row("1", "d.loss", "5"), row("2", "total", "5")]);
    let expected = "iteration 1 of lane d has no row `total`; restore it, or remove its rows";
    assert_eq!(gap, format!("DIR/i.csv:3: column `stage`: {expected}"));
    assert!(of(&["2,1,0,d,cpu,0,train,total,0,5,,\n".into()]).contains("version 2"));
    assert!(of(&[]).starts_with("DIR/i.csv: it holds no iteration;"), "{}", of(&[]));
    let missing = error_of("i.csv", &ITERATIONS.replace("host_ns,", ""));
    assert!(missing.contains("column `host_ns` is missing"), "{missing}");
}

#[test]
fn of_stages() {
    let of = |rows: &str| error_of("s.csv", &(STAGES.to_owned() + rows));
    let nan = of("0,d,total,0,10,NaN\n");
    let expected =
        "column `host_p50_ns`: `NaN` is not a whole number that is not negative; correct the line or remove it";
    assert_eq!(nan, format!("DIR/s.csv:2: {expected}"));
    let twice = of("0,d,total,0,10,5\n0,d,total,0,10,5\n");
    assert_eq!(twice, "DIR/s.csv:3: column `stage`: a second row `total` of lane d; remove one");
    assert!(of("0,d,total\n").starts_with("DIR/s.csv:2: column `all`"), "{}", of("0,d,total\n"));
    assert!(of("").starts_with("DIR/s.csv: it holds no stage"));
    assert!(of("0,d,total,0,10,\"1,5\"\n").contains("s.csv:2: column `host_p50_ns`: `1,5` is not"));
    assert!(of("0,d,total,0,10,-5\n").contains("s.csv:2: column `host_p50_ns`: `-5` is not"));
    assert!(of("0,,total,0,10,5\n").contains("s.csv:2: column `lane`: `` is not a lane's name"));
    assert!(of("0,d,total,0,10,512").contains("s.csv:2: column `all`: the line does not end: the file is cut"));
    let missing = error_of("s.csv", "rank,lane,stage,depth,iterations\n");
    assert!(missing.starts_with("DIR/s.csv:1: column `host_p50_ns` is missing"), "{missing}");
}

#[test]
fn of_what_is_no_report() {
    assert!(error_of("e.csv", "").starts_with("DIR/e.csv: the file is empty"));
    assert!(error_of("x.csv", "a,b\n1,2\n").contains("neither iterations.csv nor stages.csv: its columns are `a,b`"));
    assert!(error_of("x.bin", "\u{0}\u{1b}[2J").contains("neither iterations.csv"));
    let gone = Side::read(&[PathBuf::from("/nowhere/at-all.csv")]).unwrap_err().to_string();
    assert!(gone.starts_with("/nowhere/at-all.csv: cannot read it"), "{gone}");
    let dir = tempfile::tempdir().unwrap();
    let none = Side::read(&[dir.path().to_owned()]).unwrap_err().to_string();
    assert!(none.contains("is not a run directory: run.json is missing"), "{none}");
}

/// Cut anywhere, a report gives an answer that says so, or an error; only between two iterations nobody can tell.
#[test]
fn cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let stages = [("drafter.wait", times(1, 4, 1e6, 0.1, 0.0)), ("drafter.\"a, b\"", times(2, 4, 1e6, 0.1, 0.0))];
    let whole = std::fs::read(iterations_csv(dir.path(), "whole.csv", &stages)).unwrap();
    let rows = whole.iter().filter(|byte| **byte == b'\n').count();
    let path = dir.path().join("cut.csv");
    let mut clean = 0;
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let Ok(side) = Side::read(std::slice::from_ref(&path)) else { continue };
        let told = compare(&side, &side, &Options::default()).unwrap();
        let said = told
            .notes
            .iter()
            .any(|note| note.contains("cut.csv") && (note.contains("left out") || note.contains("no row `total`")));
        let at_an_end = whole[..length].ends_with(b"\n")
            && (whole[..length].iter().filter(|byte| **byte == b'\n').count() - 1).is_multiple_of(4);
        assert!(said || at_an_end, "byte {length}: {:?}", told.notes);
        clean += u32::from(!said);
    }
    assert_eq!((rows, clean), (17, 3), "three iterations of four end before the last");
}

/// Cut anywhere, stages.csv gives an error, or says that the lane's total is missing.
#[test]
fn stages_cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let whole = format!("{STAGES}0,d,d.loss,0,10,5000\n0,d,residue,0,10,50\n0,d,total,0,10,5050\n");
    let path = dir.path().join("cut.csv");
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let Ok(side) = Side::read(std::slice::from_ref(&path)) else { continue };
        let told = compare(&side, &side, &Options::default()).unwrap();
        assert!(told.notes.iter().any(|note| note.contains("has no row `total`")), "byte {length}: {:?}", told.notes);
    }
}

#[test]
fn a_crash_and_a_resumed_run_leave_half_a_line_which_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let row = |attempt: u32, i: u64| format!("1,{attempt},0,d,cpu,{i},train,total,0,{},,\n", 1000 + i);
    let first: String = (0..20).map(|i| row(1, i)).collect();
    let second: String = (10..40).map(|i| row(2, i)).collect();
    let path = dir.path().join("resumed.csv");
    std::fs::write(&path, format!("{ITERATIONS}{first}1,1,0,d,cpu,20,tra\n{second}")).unwrap();
    let side = Side::read(&[path]).unwrap();
    let told = compare(&side, &side, &Options::default()).unwrap();
    assert_eq!(told.rows[0].n, (50, 50));
    assert!(told.notes.iter().any(|note| note.contains(":22: a crash left half a line")), "{:?}", told.notes);
}

#[test]
fn sides_without_a_common_stage_cannot_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let a = iterations_csv(dir.path(), "a.csv", &[("drafter.loss", times(1, 50, 1e6, 0.1, 0.0))]);
    let text = std::fs::read_to_string(&a).unwrap().replace("drafter:0", "target:0");
    let b = dir.path().join("b.csv");
    std::fs::write(&b, text).unwrap();
    let (a, b) = (Side::read(&[a]).unwrap(), Side::read(&[b]).unwrap());
    let error = compare(&a, &b, &Options::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("the two sides have no lane and stage in common (drafter:0 against target:0)"),
        "{error}"
    );
}

#[test]
fn reports_need_four_a_side() {
    let dir = tempfile::tempdir().unwrap();
    let report = |name: String, ns: u64| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{STAGES}0,d,total,0,100,{ns}\n0,d,d.loss,0,100,{ns}\n")).unwrap();
        path
    };
    let sides = |count: u64| {
        let a: Vec<_> = (0..count).map(|i| report(format!("a{i}"), 100_000_000 + i * 100_000)).collect();
        let b: Vec<_> = (0..count).map(|i| report(format!("b{i}"), 120_000_000 + i * 100_000)).collect();
        compare(&Side::read(&a).unwrap(), &Side::read(&b).unwrap(), &Options::default()).unwrap()
    };
    let calls = |count| sides(count).rows.iter().map(|row| row.call.as_str()).collect::<Vec<_>>();
    assert_eq!(calls(3), ["inconclusive"; 2]);
    assert_eq!(calls(4), ["regressed"; 2]);
}
