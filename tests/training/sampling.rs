//! CPU sampling that comes and goes in a training, while C++ exceptions fly.

use super::running::Training;
use super::tiny::Place;
use dflash_reports::timeline::control::{Answer, Ask, Client};
use dflash_reports::timeline::{RunDir, read};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Loaded into the training: a thread that throws through twenty functions and catches, again and again.
const THROWER: &str = r#"
#include <chrono>
#include <pthread.h>
#include <stdexcept>
#include <thread>

__attribute__((noinline)) int deep(int left) {
  struct Unwound { volatile int here; ~Unwound() { here = 0; } } unwound{left};
  if (left == 0) throw std::runtime_error("on purpose");
  return deep(left - 1) + unwound.here;
}

__attribute__((constructor)) void begin() {
  std::thread([] {
    pthread_setname_np(pthread_self(), "thrower");
    for (;;) {
      for (int i = 0; i < 20; i++) try { deep(20); } catch (const std::exception&) {}
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }).detach();
}
"#;

fn thrower(place: &Place) -> PathBuf {
    let (source, library) = (place.path("thrower.cpp"), place.path("thrower.so"));
    fs::write(&source, THROWER).unwrap();
    let mut compile = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "g++".into()));
    compile.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-o"]).arg(&library).arg(&source);
    assert!(compile.status().unwrap().success());
    library
}

fn starts_and_stops(times: u32) {
    let place = Place::new();
    let library = thrower(&place);
    let mut training = Training::with(&place, |command| _ = command.env("LD_PRELOAD", &library));
    let run = RunDir::open(&training.run).unwrap();
    let mut client = Client::connect(&run, 0, "test").unwrap();
    let mut ask = |ask: Ask| client.ask(ask, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let Answer::Stacks(threads) = ask(Ask::Stacks) else { panic!("no stacks") };
    assert!(threads.iter().any(|thread| thread.name == "thrower"), "exceptions fly");
    let (mut samples, mut lost) = (0, 0);
    for round in 0..times {
        ask(Ask::CpuStart { hz: 999 });
        // From an end at once to one after some dozens of samples.
        thread::sleep(Duration::from_millis(u64::from(round % 5) * 5));
        let Answer::Cpu(report) = ask(Ask::CpuStop) else { panic!("no report in round {round}") };
        samples += report.samples;
        lost += report.lost;
    }
    training.wait_for_a_step();
    // On a busy machine a short round may get none; not all of them.
    let begin = Instant::now();
    while samples == 0 {
        assert!(begin.elapsed() < Duration::from_secs(120), "no sample in {times} rounds");
        ask(Ask::CpuStart { hz: 999 });
        thread::sleep(Duration::from_millis(100));
        let Answer::Cpu(report) = ask(Ask::CpuStop) else { panic!("no report") };
        samples += report.samples;
    }
    ask(Ask::Stop);
    assert_eq!(training.end(), Some(0), "it trained on, through {samples} samples, {lost} lost");
    let timeline = read(&run).unwrap();
    let totals = timeline.totals;
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
    assert_eq!(totals.emitted, totals.written + totals.dropped, "{totals:?}");
    assert_eq!(timeline.stacks.len() as u64, samples, "each sample is a stack in the timeline");
}

#[test]
fn cpu_sampling_comes_and_goes_while_exceptions_fly() {
    starts_and_stops(20);
}

/// `make soak`: some minutes.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_starts_of_cpu_sampling_while_exceptions_fly() {
    starts_and_stops(1_000);
}
