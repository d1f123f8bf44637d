//! Stacks of threads, of those that work and of those that wait.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dflash_sys::sampling::{Asking, End, FRAMES, Label, Sample, Sampling, set_thread_tag};
use dflash_sys::thread_id;

/// The handler is the process's, so one test samples at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Shows the tag and the hint.
fn label(tag: u32, hint: u64, label: &mut Label) {
    (label.lane, label.iteration) = (tag, hint);
}

struct Busy {
    tid: u32,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Busy {
    fn start(tag: u32, work: fn()) -> Self {
        let (send, receive) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            set_thread_tag(tag);
            send.send(thread_id()).unwrap();
            while !told.load(Ordering::Relaxed) {
                work();
            }
        });
        Self { tid: receive.recv().unwrap(), stop, thread }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[inline(never)]
fn spin() {
    (0..10_000_u64).for_each(|i| {
        black_box(i);
    });
}

/// Recurses, and works at the bottom.
#[inline(never)]
fn deep(left: usize) -> usize {
    if left == 0 {
        (0..200).for_each(|_| spin());
        return 0;
    }
    black_box(deep(left - 1)) + 1
}

/// Collects samples until there are enough of them.
fn collect(sampling: &mut Sampling, enough: usize) -> Vec<Sample> {
    let mut samples = Vec::new();
    let begin = Instant::now();
    while samples.len() < enough {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} samples only", samples.len());
        while sampling.next(|sample| samples.push(sample.clone())) {}
        thread::sleep(Duration::from_millis(5));
    }
    samples
}

#[test]
fn a_busy_thread_is_sampled_to_its_root() {
    let _alone = alone();
    let mut sampling = Sampling::start(label).unwrap();
    let busy = Busy::start(7, spin);
    let timer = sampling.watch(busy.tid, 500, 42).unwrap();
    let samples = collect(&mut sampling, 50);
    drop(timer);
    let tid = busy.tid;
    busy.end();
    assert!(samples.iter().all(|s| s.tid == tid && s.label.lane == 7 && s.label.iteration == 42 && s.request == 0));
    let spin_at = spin as *const () as u64;
    let in_spin = |s: &&Sample| s.frames().iter().any(|at| (spin_at..spin_at + 4096).contains(at));
    let (found, rooted) =
        (samples.iter().filter(in_spin).count(), samples.iter().filter(|s| s.end == End::Root).count());
    assert!(found * 10 >= samples.len() * 9, "{found} of {}", samples.len());
    assert!(rooted * 10 >= samples.len() * 9, "{rooted} of {}", samples.len());
    let mut costs: Vec<u32> = samples.iter().map(|s| s.cost_ns).collect();
    costs.sort_unstable();
    println!("a walk of {} frames: median {} ns", samples[25].frames().len(), costs[costs.len() / 2]);
}

#[test]
fn a_deep_stack_is_cut() {
    let _alone = alone();
    let mut sampling = Sampling::start(label).unwrap();
    let busy = Busy::start(1, || {
        black_box(deep(2_000));
    });
    let timer = sampling.watch(busy.tid, 500, 0).unwrap();
    let samples = collect(&mut sampling, 40);
    drop(timer);
    busy.end();
    let cut = samples.iter().filter(|s| s.end == End::Cut && s.frames().len() == FRAMES).count();
    assert!(cut * 2 > samples.len(), "{cut} of {}", samples.len());
}

#[test]
fn a_ring_that_nobody_empties_loses_and_counts() {
    let _alone = alone();
    let mut sampling = Sampling::start(label).unwrap();
    let busy: Vec<Busy> = (0..2).map(|_| Busy::start(1, spin)).collect();
    // Timers come at the kernel's ticks, several to one: more timers, more signals.
    let timers: Vec<_> =
        busy.iter().cycle().take(200).map(|busy| sampling.watch(busy.tid, 1_000, 0).unwrap()).collect();
    let begin = Instant::now();
    while sampling.lost() < 10 {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing is lost");
        thread::sleep(Duration::from_millis(5));
    }
    drop(timers);
    let mut kept = 0;
    while sampling.next(|_| kept += 1) {}
    assert!(kept >= 4096, "the ring was full: {kept}");
    let lost = sampling.lost();
    assert_eq!(collect_after(&mut sampling, &busy[0]), 5, "and goes on");
    assert!(sampling.lost() >= lost);
    busy.into_iter().for_each(Busy::end);
}

fn collect_after(sampling: &mut Sampling, busy: &Busy) -> usize {
    let timer = sampling.watch(busy.tid, 500, 0).unwrap();
    let samples = collect(sampling, 5);
    drop(timer);
    samples.len().min(5)
}

#[test]
fn a_waiting_thread_answers() {
    let _alone = alone();
    let lock = Arc::new(Mutex::new(()));
    let held = lock.lock().unwrap();
    let (send, receive) = channel();
    let waiting = Arc::clone(&lock);
    let thread = thread::spawn(move || {
        set_thread_tag(9);
        send.send(thread_id()).unwrap();
        drop(waiting.lock());
    });
    let tid = receive.recv().unwrap();
    let mut asking = Asking::start(label).unwrap();
    asking.ask(tid, 5).unwrap();
    asking.ask(thread_id(), 6).unwrap();
    let mut answers = Vec::new();
    let begin = Instant::now();
    while answers.len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{answers:?}");
        while asking.next(|sample| answers.push(sample.clone())) {}
    }
    assert!(asking.ask(u32::MAX >> 4, 0).is_err(), "there is no such thread");
    drop(asking);
    drop(held);
    thread.join().unwrap();
    let of = |tid| answers.iter().find(|s| s.tid == tid).unwrap();
    assert_eq!((of(tid).label.lane, of(tid).label.iteration, of(tid).end), (9, 5, End::Root));
    assert_eq!((of(thread_id()).label.lane, of(thread_id()).label.iteration), (0, 6));
    assert!(of(tid).frames().len() > 4);
}

#[test]
fn only_one_samples_at_a_time() {
    let _alone = alone();
    let first = Sampling::start(label).unwrap();
    let error = Sampling::start(label).unwrap_err();
    assert!(error.to_string().contains("already"), "{error}");
    drop(first);
    drop(Sampling::start(label).unwrap());
}

/// Lets the calling thread take the signal, or not.
fn blocks(signal: i32, how: i32) {
    // SAFETY: a set of signals is a plain C struct that sigemptyset fills in; all pointers are valid for the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        assert_eq!(libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()), 0);
    }
}

#[test]
fn a_late_answer_is_not_taken_for_one_to_the_next_question() {
    let _alone = alone();
    // Keeps the handler between the two rounds, as sampling does: else the late signal is thrown away.
    let sampling = Sampling::start(label).unwrap();
    let signal = sampling.signal();
    let (ready, go, done) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let (send, receive) = channel();
        let (ready, go, done) = (&ready, &go, &done);
        let late = scope.spawn(move || {
            blocks(signal, libc::SIG_BLOCK);
            send.send(thread_id()).unwrap();
            ready.wait();
            go.wait();
            // What was sent in the first round is taken here, in the second.
            blocks(signal, libc::SIG_UNBLOCK);
            done.wait();
            go.wait();
        });
        ready.wait();
        let tid = receive.recv().unwrap();
        let first = Asking::start(label).unwrap();
        first.ask(tid, 1).unwrap();
        drop(first);
        let mut second = Asking::start(label).unwrap();
        go.wait();
        done.wait();
        let mut hints = Vec::new();
        while second.next(|sample| hints.push(sample.label.iteration)) {}
        let unasked = hints.len();
        second.ask(tid, 2).unwrap();
        let begin = Instant::now();
        while hints.is_empty() && begin.elapsed() < Duration::from_secs(60) {
            while second.next(|sample| hints.push(sample.label.iteration)) {}
            thread::sleep(Duration::from_millis(1));
        }
        go.wait();
        late.join().unwrap();
        assert_eq!((unasked, hints), (0, vec![2]), "nobody was asked before");
    });
}
