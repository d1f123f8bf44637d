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
