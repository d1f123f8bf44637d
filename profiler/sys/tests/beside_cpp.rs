//! Sampling beside C++: started and stopped again and again while threads come and go and exceptions fly.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail loudly, and say what it counted")]

use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use dflash_sys::sampling::{Asking, End, Label, Sampling};
use dflash_sys::thread_id;

const THROWS: &str = r#"
#include <stdexcept>
#include <string>
static long deep(long n) {
    std::string text("thrown at ");
    if (n == 0) throw std::runtime_error(text + "the bottom");
    return deep(n - 1) + (long) text.size();
}
extern "C" long throw_and_catch(long n) {
    try { return deep(n); } catch (const std::exception& error) { return (long) std::string(error.what()).size(); }
}
// Realigns its stack, as functions that compute with vectors do, and does not know how big it is.
extern "C" __attribute__((noinline)) long realigned(long n, long, long, long, long, long, long h, long (*work)(long)) {
    alignas(64) volatile char buffer[256];
    volatile char* more = (volatile char*) __builtin_alloca(n);
    buffer[n & 255] = more[0] = 1;
    return work(n) + buffer[n & 255] + more[0] + h;
}
"#;

type Throw = unsafe extern "C" fn(libc::c_long) -> libc::c_long;

/// Calls the last argument with the first.
#[cfg(target_arch = "x86_64")]
type Realigned = unsafe extern "C" fn(
    libc::c_long,
    libc::c_long,
    libc::c_long,
    libc::c_long,
    libc::c_long,
    libc::c_long,
    libc::c_long,
    extern "C" fn(libc::c_long) -> libc::c_long,
) -> libc::c_long;

/// A C++ function of the library above, which is built and loaded.
fn function(directory: &Path, name: &CStr) -> *mut libc::c_void {
    let (source, library) = (directory.join("throws.cpp"), directory.join("libthrows.so"));
    std::fs::write(&source, THROWS).unwrap();
    let built = Command::new("c++").args(["-O1", "-fPIC", "-shared", "-o"]).args([&library, &source]).status();
    assert!(built.as_ref().is_ok_and(|status| status.success()), "this test needs a C++ compiler, `c++`: {built:?}");
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library was just built; it has no initialisers of its own.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    // SAFETY: the handle is valid.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!symbol.is_null());
    symbol
}

extern "C" fn works(n: libc::c_long) -> libc::c_long {
    (0..100_000 * n).for_each(|i| {
        black_box(i);
    });
    n
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_realigned_stack_is_followed() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let realigned = function(directory.path(), c"realigned");
    // SAFETY: that is the function's type, and the library stays loaded.
    let realigned = unsafe { std::mem::transmute::<*mut libc::c_void, Realigned>(realigned) };
    let mut sampling = Sampling::start(unlabelled).unwrap();
    let timer = sampling.watch(thread_id(), 500, 0).unwrap();
    let (mut rooted, mut all) = (0, 0);
    let begin = Instant::now();
    while all < 40 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{all} samples only");
        // SAFETY: the function takes any small numbers, and a function.
        assert_eq!(unsafe { realigned(8, 0, 0, 0, 0, 0, 7, works) }, 8 + 1 + 1 + 7);
        while sampling.next(|sample| {
            all += 1;
            rooted += u32::from(sample.end == End::Root && sample.frames().len() > 5);
        }) {}
    }
    drop(timer);
    assert!(rooted * 10 >= all * 9, "{rooted} of {all} came to the root");
}

/// The handler is the process's, so one test samples at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

fn unlabelled(_tag: u32, _hint: u64, _label: &mut Label) {}

/// What goes on meanwhile; counted, so that it is seen to go on.
fn exceptions(throw: Throw, over: &AtomicBool, caught: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        // SAFETY: the function takes any small number.
        assert_eq!(unsafe { throw(30) }, 20);
        // Not `panic!`, which would print: the same unwinding without the hook.
        assert!(std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(black_box(7)))).is_err());
        caught.fetch_add(1, Ordering::Relaxed);
    }
}

fn threads_that_come_and_go(over: &AtomicBool, ended: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        let threads: Vec<_> = (0..4).map(|i| thread::spawn(move || black_box(vec![i; 1 << 14]).len())).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), 1 << 14));
        ended.fetch_add(4, Ordering::Relaxed);
    }
}

fn tids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Starts, samples for a few milliseconds, asks everybody, stops. Returns samples and answers.
fn cycle() -> (u64, u64) {
    let (mut samples, mut answers) = (0, 0);
    let mut sampling = Sampling::start(unlabelled).unwrap();
    let timers: Vec<_> = tids().into_iter().filter_map(|tid| sampling.watch(tid, 997, 0).ok()).collect();
    thread::sleep(Duration::from_millis(8));
    let mut asking = Asking::start(unlabelled).unwrap();
    let asked = tids().into_iter().filter(|tid| *tid != thread_id() && asking.ask(*tid, 0).is_ok()).count();
    thread::sleep(Duration::from_millis(2));
    while asking.next(|_| answers += 1) {}
    assert!(answers <= asked as u64);
    drop(asking);
    drop(timers);
    while sampling.next(|sample| samples += u64::from(!sample.frames().is_empty())) {}
    (samples, answers)
}

fn run(cycles: u32) {
    let directory = tempfile::tempdir().unwrap();
    let _alone = alone();
    let throw = function(directory.path(), c"throw_and_catch");
    // SAFETY: that is the function's type, and the library stays loaded.
    let throw = unsafe { std::mem::transmute::<*mut libc::c_void, Throw>(throw) };
    let (over, caught, ended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    let (mut samples, mut answers) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| exceptions(throw, &over, &caught));
        scope.spawn(|| exceptions(throw, &over, &caught));
        scope.spawn(|| threads_that_come_and_go(&over, &ended));
        for _ in 0..cycles {
            let (more_samples, more_answers) = cycle();
            samples += more_samples;
            answers += more_answers;
        }
        over.store(true, Ordering::Relaxed);
    });
    let (caught, ended) = (caught.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
    println!(
        "{cycles} cycles in {:.1?}: {samples} samples, {answers} answers, {caught} exceptions of each kind, {ended} threads",
        begin.elapsed()
    );
    assert!(samples > 0 && answers > 0 && caught > 0 && ended > 0);
}

#[test]
fn a_hundred_cycles() {
    run(100);
}

/// `cargo test -p dflash-sys --test beside_cpp -- --ignored`
#[test]
#[ignore = "takes a minute; part of the soak tests"]
fn a_thousand_cycles() {
    run(1_000);
}
