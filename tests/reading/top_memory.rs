//! What `dflash top` keeps in memory of a big training, however long it watches: the records of the last minutes once, and
//! what a look at them takes.

use super::terminal::{process_in, terminal};
use super::writing::Writer;
use dflash_reports::timeline::{Manifest, RunDir};
use std::thread;
use std::time::Duration;

const GPUS: usize = 64;

/// Memory that the program may fill beyond what it takes without a run, in MB. Not counted: the pages of its file, which
/// a build without optimisation has many more of, and what libtorch takes where it is linked. With the 10 MB of both of
/// a release build that only reads, that is below 60 MB.
const MOST: u64 = 50;

fn own_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1000
}

/// Three minutes of recording, ten times as quick: more than is kept.
#[test]
fn memory_stays_small_with_64_gpus() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 200, 60) else { return };
    let top = format!("'{}' top --interval 0.1", env!("CARGO_BIN_EXE_dflash"));
    terminal.line(&format!("{top} --runs without"));
    terminal.wait("Overview");
    let before = own_memory(process_in(dir.path()));
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
    let run = RunDir::create(&dir.path().join("runs"), "big", Manifest::default()).unwrap();
    let mut writer = Writer::create(&run, GPUS);
    (0..600).for_each(|number| writer.tick(number));
    terminal.line(&top);
    terminal.wait("alive");
    let process = process_in(dir.path());
    let own_memory = |process| own_memory(process).saturating_sub(before);
    let mut seen = vec![own_memory(process)];
    for number in 600..2400 {
        writer.tick(number);
        thread::sleep(Duration::from_millis(10));
        seen.push(own_memory(process));
    }
    let most = seen.iter().max().copied().unwrap_or_default();
    let every: Vec<u64> = seen.iter().step_by(100).copied().collect();
    eprintln!("{most} {every:?}");
    assert!(most < MOST, "{most} MB at most; now and then: {every:?}");
    assert!(most > seen[0], "it has read on: {every:?}");
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
}
