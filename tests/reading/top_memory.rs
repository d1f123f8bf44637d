//! What `dflash top` keeps in memory of a big training, however long it watches: the records of the last minutes once, and
//! what a look at them takes.

use super::terminal::{process_in, terminal};
use super::writing::Writer;
use dflash_reports::timeline::{Manifest, RunDir};
use std::thread;
use std::time::Duration;

const GPUS: usize = 64;

/// What the program may take of memory, in MB, in every build.
const MOST: u64 = 60;

/// Pages of its own file that a release build has in memory, rounded up. One without optimisation has many more of them, which
/// say nothing of what users have: there these stand in for them.
const PAGES_OF_ITS_FILE: u64 = 10;

/// A line of /proc/PID/status that tells an amount of memory, in MB.
pub fn megabytes(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1000
}

fn memory(process: u32) -> u64 {
    if cfg!(debug_assertions) {
        megabytes(process, "RssAnon:") + PAGES_OF_ITS_FILE
    } else {
        megabytes(process, "VmRSS:")
    }
}

/// Three minutes of recording, ten times as quick: more than is kept.
#[test]
fn memory_stays_small_with_64_gpus() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 200, 60) else { return };
    let run = RunDir::create(&dir.path().join("runs"), "big", Manifest::default()).unwrap();
    let mut writer = Writer::create(&run, GPUS);
    (0..600).for_each(|number| writer.tick(number));
    terminal.line(&format!("'{}' top --interval 0.1", env!("CARGO_BIN_EXE_dflash")));
    terminal.wait("alive");
    let process = process_in(dir.path());
    let mut seen = vec![memory(process)];
    for number in 600..2400 {
        writer.tick(number);
        thread::sleep(Duration::from_millis(10));
        seen.push(memory(process));
    }
    let most = seen.iter().max().copied().unwrap_or_default();
    let every: Vec<u64> = seen.iter().step_by(100).copied().collect();
    assert!(most < MOST, "{most} MB at most; now and then: {every:?}");
    assert!(most > seen[0], "it has read on: {every:?}");
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
}
