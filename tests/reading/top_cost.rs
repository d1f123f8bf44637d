//! What `dflash top` itself costs. These tests only print figures, and are left out unless asked for:
//!
//! `cargo test --release --test integration -- --ignored --nocapture --test-threads 1 top_cost` (`--no-default-features` tests the
//! same program, and saves building libtorch's side).

use super::terminal::{Terminal, process_in, terminal};
use super::top_memory::megabytes;
use super::writing::{Writer, Writing};
use dflash_reports::timeline::{Manifest, RunDir};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const GPUS: usize = 64;

/// CPU time of a process in seconds (utime and stime, in ticks of 10 ms), and its memory in MB, now and at most.
fn used(id: u32) -> (f64, u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
    (ticks as f64 / 100.0, megabytes(id, "VmRSS:"), megabytes(id, "VmHWM:"))
}

fn start(directory: &Path, arguments: &str) -> Option<(Terminal, u32)> {
    let terminal = terminal(directory, 200, 60)?;
    terminal.line(&format!("'{}' top {arguments}", env!("CARGO_BIN_EXE_dflash")));
    terminal.wait("alive");
    let id = process_in(directory);
    Some((terminal, id))
}

#[test]
#[ignore = "prints figures of this machine, and takes minutes"]
fn cpu_and_memory_with_64_gpus() {
    let dir = tempfile::tempdir().unwrap();
    let _writing = Writing::with_gpus(dir.path(), GPUS);
    thread::sleep(Duration::from_secs(65));
    for (interval, seconds) in [("1", 60), ("0.1", 30)] {
        let Some((terminal, id)) = start(dir.path(), &format!("--interval {interval}")) else { return };
        thread::sleep(Duration::from_secs(10));
        let (before, sent) = (used(id).0, terminal.bytes());
        thread::sleep(Duration::from_secs(seconds));
        let (after, now, most) = used(id);
        let percent = (after - before) * 100.0 / seconds as f64;
        let bytes = (terminal.bytes() - sent) / seconds;
        println!(
            "{GPUS} GPUs, interval {interval} s: {percent:.2} % of a core, {now} MB, at most {most} MB, {bytes} bytes/s"
        );
        // The next one must be alone.
        terminal.type_in("q");
        terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
    }
}

/// A process for each GPU: as many streams, each of which is begun near its end.
#[test]
#[ignore = "prints figures of this machine"]
fn first_frame_and_memory_with_64_processes() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("runs"), "ranks", Manifest::default()).unwrap();
    let mut writers: Vec<Writer> = (0..GPUS as u32).map(|rank| Writer::of_rank(&run, rank, 1)).collect();
    for number in 0..20_000 {
        writers.iter_mut().for_each(|writer| writer.tick(number));
    }
    let mut times: Vec<f64> = (0..5).map(|_| once(dir.path())).collect();
    times.sort_by(f64::total_cmp);
    let Some((_terminal, id)) = start(dir.path(), "") else { return };
    thread::sleep(Duration::from_secs(10));
    let (_, now, most) = used(id);
    println!(
        "{GPUS} processes: {:.3} s to the first frame, median of {times:.3?}; {now} MB, at most {most} MB",
        times[2]
    );
    writers.into_iter().for_each(Writer::end);
}

/// A day of recording passes in a minute or so; memory is read each quarter of it.
#[test]
#[ignore = "prints figures of this machine, and takes minutes"]
fn memory_over_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("runs"), "day", Manifest::default()).unwrap();
    let mut writer = Writer::create(&run, 2);
    writer.tick(0);
    let Some((_terminal, id)) = start(dir.path(), "--interval 0.1") else { return };
    let quarter = 6 * 3600 * 10;
    for number in 1..=4 * quarter {
        writer.tick(number);
        // Slowly enough that everything is looked at.
        if number % 400 == 0 {
            thread::sleep(Duration::from_millis(20));
        }
        if number % quarter == 0 {
            thread::sleep(Duration::from_secs(2));
            let (cpu, now, most) = used(id);
            println!("after {} h: {now} MB, at most {most} MB; {cpu:.1} s of CPU time", number / quarter * 6);
        }
    }
    writer.end();
}

/// From the start of the program to its first frame, of a recording of so many bytes: it writes 10 GB, and removes them.
#[test]
#[ignore = "prints figures of this machine, and takes minutes"]
fn time_to_the_first_frame() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("runs"), "long", Manifest::default()).unwrap();
    let mut writer = Writer::create(&run, GPUS);
    let mut number = 0;
    for megabytes in [10_u64, 1000, 10_000] {
        let size = || -> u64 {
            let segments = std::fs::read_dir(run.timeline_dir()).unwrap();
            segments.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
        };
        while size() < megabytes << 20 {
            (0..500).for_each(|_| {
                writer.tick(number);
                number += 1;
            });
        }
        let mut times: Vec<f64> = (0..5).map(|_| once(dir.path())).collect();
        times.sort_by(f64::total_cmp);
        println!("a live run of {megabytes} MB: {:.3} s to the first frame, median of {times:.3?}", times[2]);
    }
    writer.end();
}

fn once(directory: &Path) -> f64 {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    let output = command.current_dir(directory).args(["top", "--once", "--size", "200x60"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    began.elapsed().as_secs_f64()
}
