//! iterations.csv in parts: whenever packing is cut short, each row is there once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dflash_timeline::iterations::{RESIDUE, TOTAL, read_iterations_noting};
use dflash_timeline::record::Kind;
use dflash_timeline::{IterationRow, IterationsWriter, PartOptions, iterations, read_iterations};

const PLAIN: PartOptions = PartOptions { part_bytes: Some(2000), pack: false };
const PACKED: PartOptions = PartOptions { part_bytes: Some(2000), pack: true };

/// The rows of an iteration, with times whose last digits matter.
fn iteration(number: u64) -> Vec<IterationRow> {
    let begin = 1_795_996_799_000_000_123 + 10_000_000 * number as i64;
    let row = |stage: &str, start_ns: i64, host_ns: u64| IterationRow {
        lane: "drafter:0".into(),
        device: "cuda:0".into(),
        iteration: number,
        kind: Kind::Train,
        stage: stage.into(),
        start_ns,
        host_ns: Some(host_ns),
        device_ns: (stage == "drafter.loss").then_some(host_ns - 321),
        tokens: (stage == TOTAL).then_some(512),
        ..IterationRow::default()
    };
    let (wait, loss, rest) = (700 + 13 * number, 5_000_900 - number, 1_999);
    vec![
        row("drafter.wait", begin + 40, wait),
        row("drafter.loss", begin + 50 + wait as i64, loss),
        row(RESIDUE, begin, rest),
        row(TOTAL, begin, wait + loss + rest),
    ]
}

fn write(path: &Path, options: PartOptions, numbers: std::ops::Range<u64>) -> IterationsWriter {
    let mut writer = IterationsWriter::with_options(path, options).unwrap();
    for number in numbers {
        iteration(number).iter().for_each(|row| writer.write(row).unwrap());
        writer.flush().unwrap();
    }
    writer
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn run() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("iterations.csv");
    (directory, path)
}

fn plain_rows(count: u64) -> Vec<IterationRow> {
    (0..count).flat_map(iteration).collect()
}

/// Without what packing may round.
fn same(rows: Vec<IterationRow>) -> Vec<IterationRow> {
    let clear = |row: IterationRow| IterationRow { start_ns: 0, host_ns: None, device_ns: None, ..row };
    rows.into_iter().map(clear).collect()
}

#[test]
fn parts_and_file_are_read_as_one() {
    let (directory, path) = run();
    write(&path, PLAIN, 0..30);
    let names = files(directory.path());
    assert!(names.len() > 3 && names[0] == "iterations-000001.csv", "{names:?}");
    assert_eq!(read_iterations(&path).unwrap(), plain_rows(30));
    // The next attempt goes on where this one stopped, and numbers on.
    write(&path, PLAIN, 30..60);
    assert_eq!(iterations(&path).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), plain_rows(60));
    fs::remove_file(&path).unwrap();
    assert!(read_iterations(&path).unwrap().len() > 200, "a crash just after the file was put away");
}

#[test]
fn packed_parts_keep_whole_microseconds_that_add_up() {
    let (directory, path) = run();
    let mut writer = write(&path, PACKED, 0..30);
    wait_for("packing", || files(directory.path()).iter().filter(|n| n.ends_with(".csv")).count() == 1);
    assert_eq!(writer.problem(), None);
    // Said after the part that it was for.
    wait_for("its cost", || writer.pack_cpu_ns() > 0);
    let (rows, notice) = read_iterations_noting(&path).unwrap();
    assert_eq!((same(rows.clone()), notice), (same(plain_rows(30)), None));
    for (packed, plain) in rows.chunks(4).zip(plain_rows(30).chunks(4)) {
        let sum: u64 = packed[..3].iter().filter_map(|row| row.host_ns).sum();
        assert_eq!(Some(sum), packed[3].host_ns, "stages and residue add up to the total");
        for (packed, plain) in packed.iter().zip(plain) {
            let off = packed.host_ns.unwrap().abs_diff(plain.host_ns.unwrap());
            assert!(off < 1000, "{packed:?} {plain:?}");
            assert!(packed.device_ns.unwrap_or(0).abs_diff(plain.device_ns.unwrap_or(0)) <= 500);
        }
    }
    assert_eq!(rows[1].start_ns, 1_795_996_799_000_000_000, "the iteration's, in microseconds");
    writer.flush().unwrap();
}

#[test]
fn a_crash_at_any_moment_loses_and_doubles_nothing() {
    let (directory, path) = run();
    write(&path, PLAIN, 0..30);
    let part = directory.path().join("iterations-000002.csv");
    let packed = directory.path().join("iterations-000002.csv.zst");
    let beside = directory.path().join("iterations-000002.csv.zst.part");
    let whole = || same(read_iterations(&path).unwrap()) == same(plain_rows(30));
    // While it is written beside.
    fs::write(&beside, "half").unwrap();
    assert!(whole());
    // When the packed part is there and the plain one, too.
    let plain = fs::read(&part).unwrap();
    drop(IterationsWriter::with_options(&path, PACKED).unwrap());
    wait_for("packing", || packed.exists() && !part.exists());
    assert!(whole() && !beside.exists());
    fs::write(&part, &plain).unwrap();
    assert!(whole(), "the packed part counts, once");
    drop(IterationsWriter::with_options(&path, PACKED).unwrap());
    wait_for("the plain part to go", || !part.exists());
    assert!(whole());
}

#[test]
fn a_part_that_another_packer_is_at_is_left_to_it() {
    let (directory, path) = run();
    write(&path, PLAIN, 0..30);
    let [plain, packed, beside] =
        ["", ".zst", ".zst.part"].map(|end| directory.path().join(format!("iterations-000001.csv{end}")));
    let other = fs::File::create(&beside).unwrap();
    other.lock().unwrap();
    drop(IterationsWriter::with_options(&path, PACKED).unwrap());
    wait_for("the other parts", || files(directory.path()).iter().filter(|n| n.ends_with(".csv")).count() == 2);
    assert!(plain.exists() && beside.exists() && !packed.exists(), "{:?}", files(directory.path()));
    assert_eq!(same(read_iterations(&path).unwrap()), same(plain_rows(30)));
    drop(other);
    drop(IterationsWriter::with_options(&path, PACKED).unwrap());
    wait_for("the first part", || packed.exists() && !plain.exists());
    assert_eq!(same(read_iterations(&path).unwrap()), same(plain_rows(30)));
}

#[test]
fn a_part_that_is_damaged_stays_plain() {
    let (directory, path) = run();
    write(&path, PLAIN, 0..30);
    let part = directory.path().join("iterations-000001.csv");
    let mut text = fs::read_to_string(&part).unwrap();
    text.push_str("1,1,0,torn by a cra\n");
    fs::write(&part, text).unwrap();
    let writer = IterationsWriter::with_options(&path, PACKED).unwrap();
    wait_for("the problem", || writer.problem().is_some());
    let problem = writer.problem().unwrap();
    assert!(problem.contains("iterations-000001.csv:") && problem.contains("stays as it is"), "{problem}");
    assert!(part.exists());
    let error = read_iterations(&path).unwrap_err().to_string();
    assert!(error.contains("iterations-000001.csv:") && error.contains("4 fields where the header has 12"), "{error}");
}

#[test]
fn two_who_append_put_nothing_away() {
    let (directory, path) = run();
    let mut other = IterationsWriter::with_options(&path, PACKED).unwrap();
    write(&path, PACKED, 0..30);
    assert_eq!(files(directory.path()).len(), 1);
    iteration(30).iter().for_each(|row| other.write(row).unwrap());
    other.flush().unwrap();
    wait_for("the one that is left to put the file away", || {
        files(directory.path()) == ["iterations-000001.csv.zst", "iterations.csv"]
    });
    assert_eq!(same(read_iterations(&path).unwrap()), same(plain_rows(31)));
}
