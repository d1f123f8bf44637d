//! What may stand on a side of a comparison, and what is said about it.

use crate::support::{iterations_csv, times};
use dflash_reports::diff::{At, Call, Comparison, Options, Outcome, Renames, Select, Side, calibrate, compare};
use dflash_reports::text::Look;
use dflash_reports::timeline::record::{Anchor, Counter, Lane, Sample, Totals};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter, State};
use dflash_reports::window::Selection;
use std::path::{Path, PathBuf};

const MS: f64 = 1e6;
const SECOND: u64 = 1_000_000_000;

fn of(a: &[PathBuf], b: &[PathBuf]) -> Comparison {
    compare(&Side::read(a).unwrap(), &Side::read(b).unwrap(), &Options::default()).unwrap()
}

fn stages(dir: &Path, file: &str, seed: u64, names: &[&str]) -> PathBuf {
    let all: Vec<_> = names.iter().zip(seed..).map(|(name, s)| (*name, times(s, 300, 20.0 * MS, 0.02, 0.3))).collect();
    iterations_csv(dir, file, &all)
}

/// A finished run with these rows as its iterations.csv.
fn run(dir: &Path, name: &str, csv: &Path, change: impl FnOnce(&mut Manifest)) -> RunDir {
    let run = RunDir::create(dir, name, Manifest::default()).unwrap();
    let mut manifest = run.manifest().unwrap();
    manifest.state = State::Finished;
    change(&mut manifest);
    run.write_manifest(&manifest).unwrap();
    std::fs::copy(csv, run.iterations_csv()).unwrap();
    run
}

#[test]
fn a_renamed_stage_is_compared_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let a = stages(dir.path(), "a.csv", 1, &["drafter.loss", "drafter.mask"]);
    let b = stages(dir.path(), "b.csv", 5, &["drafter.loss", "drafter.\"mask\";2"]);
    let plain = of(std::slice::from_ref(&a), std::slice::from_ref(&b));
    assert_eq!(plain.outcome, Outcome::Inconclusive);
    let hint = "drafter.mask and drafter.\"mask\";2 take about as long";
    assert!(plain.notes.iter().any(|note| note.starts_with(hint)), "{:?}", plain.notes);
    let mut renames = Renames::default();
    renames.add("drafter.mask=drafter.\"mask\";2").unwrap();
    let (mut a, b) = (Side::read(&[a]).unwrap(), Side::read(&[b]).unwrap());
    renames.apply(&mut a, &b).unwrap();
    let mapped = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(mapped.outcome, Outcome::Fine, "{}", mapped.table(Look::default()));
    let row = mapped.rows.iter().find(|row| row.renamed_from.is_some()).unwrap();
    assert_eq!(row.renamed_from.as_deref(), Some("drafter.mask"));
    assert!(mapped.table(Look::default()).contains("no change; renamed from drafter.mask"));
    let mut wrong = Renames::default();
    wrong.add("drafter.gone=drafter.loss").unwrap();
    let error = wrong.apply(&mut a, &b).unwrap_err().to_string();
    assert_eq!(error, "--map drafter.gone=drafter.loss: side A has no stage of the old name");
}

#[test]
fn runs_say_where_they_ran_and_a_csv_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let csv = stages(dir.path(), "a.csv", 1, &["drafter.loss"]);
    let config = |batch: u32| serde_json::json!({"train": {"batch": batch}, "run": {"name": "x"}});
    let a = run(dir.path(), "a", &csv, |m| (m.config, m.commit) = (config(4), Some("abc".into())));
    let b = run(dir.path(), "b", &csv, |m| (m.config, m.commit) = (config(8), Some("def".into())));
    let both = of(&[a.path().to_owned()], &[b.path().to_owned()]);
    let differs: Vec<_> = both.facts.iter().filter(|f| f.differs).map(|f| (f.what.as_str(), f.matters)).collect();
    assert_eq!(differs, [("commit", false), ("config train.batch", true)]);
    assert!(!both.comparable());
    let text = both.table(Look::default());
    assert!(text.contains("differs: config train.batch: A 4, B 8\n"), "{text}");
    let one = of(&[a.path().to_owned()], &[csv]);
    assert!(one.comparable());
    assert!(one.table(Look::default()).contains("commit A abc, B unknown"), "{}", one.table(Look::default()));
}

#[test]
fn parts_of_a_long_run_are_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let whole = stages(dir.path(), "a.csv", 1, &["drafter.loss"]);
    let text = std::fs::read_to_string(&whole).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.split_inclusive('\n').collect();
    let part = |from: usize, to: usize| format!("{header}\n{}", rows[from..to].concat());
    let long = run(dir.path(), "long", &whole, |_| ());
    let pack = |text: String| zstd::encode_all(text.as_bytes(), 1).unwrap();
    std::fs::write(long.path().join("iterations-000001.csv.zst"), pack(part(0, 300))).unwrap();
    std::fs::write(long.path().join("iterations-000002.csv.zst"), pack(part(300, 450))).unwrap();
    std::fs::write(long.iterations_csv(), part(450, rows.len())).unwrap();
    let comparison = of(&[long.path().to_owned()], &[whole]);
    let same = |row: &dflash_reports::diff::Row| row.n.0 == row.n.1 && row.ratio == Some(1.0);
    assert!(comparison.rows.iter().all(same), "{}", comparison.table(Look::default()));
    assert_eq!(comparison.outcome, Outcome::Fine);
    std::fs::write(long.path().join("iterations-000002.csv.zst"), b"no zstd").unwrap();
    let error = Side::read(&[long.path().to_owned()]).unwrap_err().to_string();
    assert!(error.contains("iterations-000002.csv.zst"), "{error}");
}

#[test]
fn iterations_with_clocks_held_down_are_set_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut slow = times(1, 200, 50.0 * MS, 0.02, 0.0);
    slow[100..120].iter_mut().for_each(|ns| *ns *= 3.0);
    let csv = iterations_csv(dir.path(), "a.csv", &[("drafter.loss", slow)]);
    // One iteration a second, on a GPU.
    let text = std::fs::read_to_string(&csv).unwrap();
    let run = run(dir.path(), "gpu", &csv, |_| ());
    std::fs::write(run.iterations_csv(), one_a_second(&text)).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 1 << 20).unwrap();
    stream.lane(&Lane { name: "drafter:0".into(), device: "cuda:0".into(), rank: 0 });
    let id = stream.counter(&Counter { name: "gpu.cuda:0.throttle".into(), unit: "bits".into(), rank: 0 });
    stream.anchor(&Anchor { monotonic_ns: 0, realtime_ns: 0 });
    for second in 0..200_i64 {
        let value = if (100..120).contains(&second) { 64.0 } else { 1.0 };
        stream.sample(&Sample { counter: id, time_ns: second * 1_000_000_000 + 500_000, value }).unwrap();
    }
    stream.end(&[], Totals::default()).unwrap();
    let comparison = of(&[run.path().to_owned()], &[csv]);
    let (Some(a), None) = comparison.throttled else { panic!("{:?}", comparison.throttled) };
    assert!((20..=21).contains(&a), "{a}");
}

/// Rows of one iteration a second, on a GPU.
fn one_a_second(text: &str) -> String {
    let row = |(line, row): (usize, &str)| {
        let mut fields: Vec<String> = row.split(',').map(str::to_owned).collect();
        if line > 0 {
            fields[4] = "cuda:0".into();
            fields[8] = format!("{}000000000", (line - 1) / 3);
        }
        fields.join(",") + "\n"
    };
    text.lines().enumerate().map(row).collect()
}

#[test]
fn a_part_can_be_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("a.csv");
    let text = std::fs::read_to_string(stages(dir.path(), "b.csv", 1, &["drafter.loss"])).unwrap();
    std::fs::write(&csv, one_a_second(&text)).unwrap();
    let n = |select: &Select| {
        let side = Side::read_part(std::slice::from_ref(&csv), select);
        side.map(|side| compare(&side, &side, &Options::default()).unwrap().cuts_a[0].of)
    };
    assert_eq!(n(&Select::default()).unwrap(), 300);
    assert_eq!(n(&Select { last_ns: Some(60 * SECOND), ..Select::default() }).unwrap(), 60);
    let (from, to) = (Some(At::SinceStart(100 * SECOND)), Some(At::Date(150 * SECOND as i64)));
    assert_eq!(n(&Select { from, to, ..Select::default() }).unwrap(), 50);
    let asked = |last: Option<&str>, window: Option<&str>| {
        let (last, window) = (last.map(|t| t.parse().unwrap()), window.map(|t| t.parse().unwrap()));
        n(&Select::from(Selection { last, window, ..Selection::default() })).unwrap()
    };
    assert_eq!((asked(Some("60s"), None), asked(None, Some("100s..@150")), asked(None, None)), (60, 50, 300));
    let none = n(&Select { lanes: vec!["target:0".into()], ..Select::default() }).unwrap_err().to_string();
    assert!(none.contains("nothing of the lanes, rank and time that were asked for"), "{none}");
}

#[test]
fn a_run_split_against_itself_gives_no_alarm() {
    let dir = tempfile::tempdir().unwrap();
    let csv = stages(dir.path(), "a.csv", 1, &["drafter.loss", "drafter.step"]);
    let found = calibrate(&csv, &Select::default(), &Options::default(), 20).unwrap();
    assert_eq!((found.splits, found.regressed, found.red), (20, 0, 0), "{}", found.table());
    assert!(found.csv().starts_with("splits,tests,"), "{}", found.csv());
    let short = iterations_csv(dir.path(), "short.csv", &[("drafter.loss", times(1, 50, MS, 0.1, 0.0))]);
    let error = calibrate(&short, &Select::default(), &Options::default(), 20).unwrap_err().to_string();
    assert!(error.contains("no lane has 200 iterations to split"), "{error}");
}

#[test]
fn names_cannot_drive_a_terminal_or_break_a_form() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a;b", "\"q\"", "<script>", "\u{1b}[31mred", "x | y"];
    let csv = stages(dir.path(), "a.csv", 1, &names);
    let comparison = of(std::slice::from_ref(&csv), std::slice::from_ref(&csv));
    assert!(!comparison.table(Look::default()).contains('\u{1b}'));
    assert!(!comparison.markdown().contains("<script>") && !comparison.markdown().contains('\u{1b}'));
    let written = comparison.csv().unwrap();
    let mut reader = csv::Reader::from_reader(written.as_slice());
    let read: Vec<String> = reader.records().map(|record| record.unwrap()[2].to_owned()).collect();
    assert!(names.iter().all(|name| read.iter().any(|stage| stage == name)), "{read:?}");
    assert!(comparison.rows.iter().all(|row| row.call == Call::NoChange));
}
