//! What threads do now.

use std::io::{Read, pipe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dflash_profiler::{Kind, ThreadStack, begin_iteration, span};

use crate::support::{PATIENCE, Recording};

fn named(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(body).unwrap()
}

/// The thread, once it sleeps in a function. On a busy machine it gets there late, and may not answer in time when it is
/// asked.
fn sleeping(recording: &Recording, name: &str, function: &str) -> ThreadStack {
    let begin = Instant::now();
    loop {
        let stack = recording.profiler.stacks().unwrap().into_iter().find(|s| s.name == name);
        let is_in = |s: &ThreadStack| s.frames.iter().any(|f| f.contains(function));
        if let Some(stack) = stack.clone().filter(|s| s.state == "sleeping" && is_in(s)) {
            return stack;
        }
        assert!(begin.elapsed() < PATIENCE, "it never sleeps in {function}: {stack:#?}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[inline(never)]
fn waits_for_the_queue(until: &std::sync::mpsc::Receiver<()>) {
    let _ = until.recv();
}

#[test]
fn a_waiting_thread_shows_its_spans_and_how_long() {
    let recording = Recording::start();
    let lane = recording.profiler.lane("drafter:0", "cpu");
    let (end, ends) = channel();
    let (tell, told) = channel();
    let thread = named("waits", move || {
        let _lane = lane.enter();
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("drafter.wait");
        tell.send(Instant::now()).unwrap();
        waits_for_the_queue(&ends);
    });
    let begun = told.recv().unwrap();
    thread::sleep(Duration::from_millis(50));
    let at_least = begun.elapsed();
    let stack = sleeping(&recording, "waits", "waits_for_the_queue");
    let at_most = begun.elapsed() + Duration::from_secs(5);
    drop(end);
    thread.join().unwrap();
    assert_eq!((stack.lane.as_deref(), stack.iteration), (Some("drafter:0"), Some(0)));
    let [(span, age)] = &stack.spans[..] else { panic!("{stack:?}") };
    assert_eq!(span, "drafter.wait");
    assert!(*age >= at_least && *age <= at_most, "{age:?} of {at_least:?} to {at_most:?}");
    assert!(stack.frames.iter().any(|f| f.ends_with("waits_for_the_queue")), "{stack:?}");
    assert_eq!(stack.note, None);
}

#[test]
fn threads_that_wait_in_every_way_answer() {
    let recording = Recording::start();
    let (lock, signal) = (Arc::new(Mutex::new(())), Arc::new((Mutex::new(false), Condvar::new())));
    let held = lock.lock().unwrap();
    let (mut from, to) = pipe().unwrap();
    let over = Arc::<AtomicBool>::default();
    let (for_lock, for_signal, for_sleep) = (Arc::clone(&lock), Arc::clone(&signal), Arc::clone(&over));
    let threads = [
        named("mutex", move || drop(for_lock.lock())),
        named("condvar", move || {
            let guard = for_signal.0.lock().unwrap();
            drop(for_signal.1.wait_while(guard, |over| !*over));
        }),
        named("read", move || drop(from.read(&mut [0]))),
        named("sleep", move || {
            while !for_sleep.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
            }
        }),
    ];
    for (name, function) in [("mutex", "lock_contended"), ("condvar", "wait"), ("read", "read"), ("sleep", "sleep")] {
        let stack = sleeping(&recording, name, function);
        assert!(stack.frames.len() > 3 && stack.note.is_none(), "{stack:#?}");
        assert_eq!((stack.lane, stack.spans.len()), (None, 0));
    }
    drop((held, to));
    over.store(true, Ordering::Relaxed);
    *signal.0.lock().unwrap() = true;
    signal.1.notify_all();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn every_thread_is_there_also_more_than_are_asked_at_once() {
    let recording = Recording::start();
    let (end, ends) = channel::<()>();
    let ends = Arc::new(Mutex::new(ends));
    let (tell, told) = channel();
    let threads: Vec<_> = (0..300)
        .map(|i| {
            let (ends, tell) = (Arc::clone(&ends), tell.clone());
            named(&format!("crowd {i}"), move || {
                tell.send(()).unwrap();
                drop(ends.lock().map(|ends| ends.recv()));
            })
        })
        .collect();
    // A thread takes its name itself, before its body begins.
    (0..300).for_each(|_| told.recv().unwrap());
    let stacks = recording.profiler.stacks().unwrap();
    drop(end);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let crowd = stacks.iter().filter(|s| s.name.starts_with("crowd")).count();
    assert_eq!(crowd, 300);
    let me = std::process::id();
    assert!(stacks.iter().any(|s| s.tid == me) && stacks.iter().any(|s| s.name == "dflash-writer"));
    let silent: Vec<_> = stacks.iter().filter(|s| s.frames.is_empty()).collect();
    assert!(silent.iter().all(|s| s.note.is_some()), "{silent:?}");
}

#[inline(never)]
fn dives(left: u32, wait: &dyn Fn()) -> u32 {
    if left == 0 {
        wait();
        return 0;
    }
    std::hint::black_box(dives(left - 1, wait)) + 1
}

#[test]
fn a_stack_that_is_too_deep_says_so() {
    let recording = Recording::start();
    let (end, ends) = channel::<()>();
    let thread = named("dives", move || {
        dives(2_000, &|| assert!(ends.recv().is_err()));
    });
    let stack = sleeping(&recording, "dives", "dives");
    drop(end);
    thread.join().unwrap();
    assert!(stack.note.as_deref().is_some_and(|note| note.contains("128")), "{stack:?}");
    assert_eq!(stack.frames.last().unwrap(), "[more than 128 functions]");
    assert!(stack.frames.iter().filter(|f| f.ends_with("dives")).count() > 100);
}
