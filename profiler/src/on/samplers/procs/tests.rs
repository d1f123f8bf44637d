//! A simulated process, and this one.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

use super::source::Source;
use super::{LaneThread, Sampler};
use crate::on::samplers::tests::Readings;

#[derive(Debug, Default)]
struct State {
    now_ns: i64,
    cpu_ns: u64,
    switches: Option<(u64, u64)>,
    memory: Option<(u64, u64)>,
    /// Id, name, CPU time in milliseconds.
    threads: Vec<(u32, &'static str, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Simulated(Rc<RefCell<State>>);

impl Source for Simulated {
    fn now_ns(&self) -> i64 {
        self.0.borrow().now_ns
    }
    fn process_cpu_ns(&self) -> u64 {
        self.0.borrow().cpu_ns
    }
    fn switches(&self) -> Option<(u64, u64)> {
        self.0.borrow().switches
    }
    fn memory(&self) -> Option<(u64, u64)> {
        self.0.borrow().memory
    }
    fn threads(&self) -> Vec<u32> {
        self.0.borrow().threads.iter().map(|thread| thread.0).rev().collect()
    }
    fn cpu_ns(&self, thread: u32) -> Option<u64> {
        self.0.borrow().threads.iter().find(|t| t.0 == thread).map(|t| t.2 * 1_000_000)
    }
    fn name(&self, thread: u32) -> Option<String> {
        self.0.borrow().threads.iter().find(|t| t.0 == thread).map(|t| t.1.to_owned())
    }
}

/// Each turn, a second after the last, as a line; ids are beyond those of real threads, which may be in lanes.
fn turns(turns: &[&[(u32, &'static str, u64)]]) -> String {
    let source = Simulated::default();
    let mut sampler = Sampler { source: source.clone(), last: None, threads: super::Threads::default() };
    let mut text = String::new();
    for threads in turns {
        source.0.borrow_mut().threads = threads.to_vec();
        let mut readings = Readings::default();
        sampler.sample(&mut readings);
        source.0.borrow_mut().now_ns += 1_000_000_000;
        let mut line: Vec<String> = Vec::new();
        for (name, _, value) in readings.samples.iter().filter(|(name, ..)| name.starts_with("thread.")) {
            line.push(format!("{} {value}", name.trim_start_matches("thread.").trim_end_matches(".cpu")));
        }
        writeln!(text, "{}", if line.is_empty() { "-".to_owned() } else { line.join(", ") }).unwrap();
    }
    text
}

const A: u32 = 1_000_000_001;
const B: u32 = 1_000_000_002;
const C: u32 = 1_000_000_003;

#[test]
fn threads_that_share_a_name_are_told_apart() {
    // The kernel has cut `drafter-trainer:0` and `drafter-trainer:1` to the same 15 bytes.
    let name = "drafter-trainer";
    let text = turns(&[
        &[(A, name, 0), (B, name, 0)],
        &[(A, name, 500), (B, name, 100), (C, name, 50)],
        // The first ends: the others keep their numbers, and its name is free for the next.
        &[(B, name, 200), (C, name, 150)],
        &[(A, name, 30), (B, name, 300), (C, name, 250)],
    ]);
    insta::assert_snapshot!(text, @r"
    -
    drafter-trainer 50, drafter-trainer#2 10, drafter-trainer#3 5
    drafter-trainer 0, drafter-trainer#2 10, drafter-trainer#3 10
    drafter-trainer 3, drafter-trainer#2 10, drafter-trainer#3 10
    ");
}

#[test]
fn a_thread_that_rests_is_said_once() {
    let text = turns(&[&[(A, "a", 10)], &[(A, "a", 20)], &[(A, "a", 20)], &[(A, "a", 20)], &[(A, "a", 40)], &[], &[]]);
    insta::assert_snapshot!(text, @r"
    -
    a 1
    a 0
    -
    a 2
    a 0
    -
    ");
}

#[test]
fn a_name_that_comes_late_or_belongs_to_another_thread_by_now() {
    let text = turns(&[
        &[(A, "dflash", 0), (B, "dflash", 0)],
        // B has got its name.
        &[(A, "dflash", 10), (B, "loader", 10)],
        // The id is another thread's: less CPU time than before.
        &[(A, "dflash", 20), (B, "other", 5)],
        &[(A, "dflash", 30), (B, "other", 15), (C, "", 10)],
        // A thread may be called like a number of ours.
        &[(A, "dflash", 40), (B, "other", 25), (C, "", 20), (C + 1, "x#2", 10), (C + 2, "x", 10), (C + 3, "x", 10)],
    ]);
    insta::assert_snapshot!(text, @r"
    -
    dflash 1, loader 1
    dflash 1, other 0.5
    dflash 1, other 1, unnamed 1
    dflash 1, other 1, unnamed 1, x#2 1, x 1, x#3 1
    ");
}

#[test]
fn a_process_that_makes_threads_without_end_has_few_counters() {
    let source = Simulated::default();
    let mut sampler = Sampler { source: source.clone(), last: None, threads: super::Threads::default() };
    let mut readings = Readings::default();
    for turn in 0..1000_u32 {
        source.0.borrow_mut().threads = (0..3).map(|i| (A + turn * 3 + i, "short", 5)).collect();
        sampler.sample(&mut readings);
        source.0.borrow_mut().now_ns += 1_000_000_000;
    }
    let names: std::collections::BTreeSet<_> =
        readings.samples.iter().map(|(name, ..)| name.as_str()).filter(|name| name.starts_with("thread.")).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["thread.short#2.cpu", "thread.short#3.cpu", "thread.short.cpu"]);
}

#[test]
fn rates_need_two_turns_and_what_is_not_told_is_left_out() {
    let source = Simulated::default();
    let mut sampler = Sampler { source: source.clone(), last: None, threads: super::Threads::default() };
    let mut turn = |now_ns, cpu_ns, switches, memory| {
        *source.0.borrow_mut() = State { now_ns, cpu_ns, switches, memory, threads: Vec::new() };
        let mut readings = Readings::default();
        sampler.sample(&mut readings);
        readings.samples.iter().map(|(name, unit, value)| format!("{name}={value} {unit}")).collect::<Vec<_>>()
    };
    assert_eq!(turn(0, 0, Some((5, 5)), None), Vec::<String>::new());
    let half = 500_000_000;
    let all = turn(half, 1_000_000_000, Some((15, 6)), Some((1, 2)));
    insta::assert_snapshot!(all.join("\n"), @r"
    process.cpu=200 %
    process.switches.voluntary=20 1/s
    process.switches.involuntary=2 1/s
    process.rss=1 bytes
    process.rss.peak=2 bytes
    ");
    // A clock that stands still gives no rate.
    assert_eq!(turn(half, 1_000_000_000, None, None), Vec::<String>::new());
}

#[test]
fn a_busy_thread_is_seen_by_its_lane() {
    let mut sampler = Sampler::<super::Kernel>::default();
    sampler.sample(&mut Readings::default());
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let busy = std::thread::Builder::new().name("busy (one) x".into()).spawn(move || {
        let lane = LaneThread::enter("a lane with a long name");
        let begin = dflash_sys::thread_cpu_ns();
        while dflash_sys::thread_cpu_ns() - begin < 300_000_000 {}
        done.send(()).unwrap();
        let _ = ended.recv();
        drop(lane);
    });
    let busy = busy.unwrap();
    wait.recv().unwrap();
    let mut readings = Readings::default();
    sampler.sample(&mut readings);
    drop(end);
    busy.join().unwrap();
    let cpu = readings.last("thread.a lane with a long name.cpu").unwrap();
    // It shares the processors with other tests.
    assert!((1.0..101.0).contains(&cpu), "{cpu} %");
    assert!(readings.last("process.cpu").unwrap() >= cpu * 0.9);
    assert!(readings.last("process.rss.peak").unwrap() >= readings.last("process.rss").unwrap());
}

/// `cargo test -p dflash-profiler procs_cost -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn procs_cost() {
    for count in [10, 100, 300] {
        let (mut ends, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            ends.push(end);
            threads.push(std::thread::spawn(move || ended.recv()));
        }
        let mut sampler = Sampler::<super::Kernel>::default();
        let turn = |_| {
            std::thread::sleep(Duration::from_millis(5));
            let begin = dflash_sys::thread_cpu_ns();
            sampler.sample(&mut Readings::default());
            dflash_sys::thread_cpu_ns() - begin
        };
        let mut costs: Vec<u64> = (0..101).map(turn).collect();
        costs.sort_unstable();
        println!("{count} threads: a turn takes {} us of CPU, at most {} us", costs[50] / 1000, costs[100] / 1000);
        drop(ends);
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}
