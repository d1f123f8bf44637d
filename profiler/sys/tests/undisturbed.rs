//! What the signal must not disturb: children, errno, system calls that wait.

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use dflash_sys::sampling::{Asking, Label, Sampling};
use dflash_sys::{thread_cpu_ns, thread_id};

/// The handler is the process's, so one test samples at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

fn label(_tag: u32, _hint: u64, _label: &mut Label) {}

fn spin() {
    (0..10_000_u64).for_each(|i| {
        black_box(i);
    });
}

#[test]
fn children_are_not_killed() {
    let _alone = alone();
    let mut sampling = Sampling::start(label).unwrap();
    let parent = thread_id();
    let timer = sampling.watch(parent, 1_000, 0).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Signals all the time, so that some come while a child is being made.
        scope.spawn(|| {
            let mut asking = Asking::start(label).unwrap();
            let mut answers = 0;
            while !over.load(Ordering::Relaxed) {
                asking.ask(parent, 0).unwrap();
                thread::sleep(Duration::from_micros(100));
                while asking.next(|_| answers += 1) {}
            }
            println!("{answers} signals met the parent");
            assert!(answers > 0);
        });
        let statuses: Vec<_> = (0..200).map(|_| Command::new("true").status()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(statuses.iter().all(|status| status.as_ref().is_ok_and(|s| s.success())), "{statuses:?}");
    });
    drop(timer);
    while sampling.next(|_| ()) {}
}

#[test]
fn errno_and_a_waiting_read_are_as_if_nothing_had_been() {
    let _alone = alone();
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [from, to] = ends;
    let over = AtomicBool::new(false);
    let (send, receive) = channel();
    thread::scope(|scope| {
        let (over, sends) = (&over, send.clone());
        scope.spawn(move || {
            sends.send(thread_id()).unwrap();
            // SAFETY: this thread's own errno.
            let errno = unsafe { libc::__errno_location() };
            while !over.load(Ordering::Relaxed) {
                // SAFETY: as above; nothing but a signal handler may change it in between.
                let after = unsafe {
                    errno.write_volatile(42);
                    spin();
                    errno.read_volatile()
                };
                assert_eq!(after, 42);
            }
        });
        let reads = scope.spawn(move || {
            send.send(thread_id()).unwrap();
            let mut byte = 0_u8;
            // SAFETY: there is room for the one byte that is read. Not std's read, which would try again by itself.
            (unsafe { libc::read(from, (&raw mut byte).cast(), 1) }, byte)
        });
        let tids = [receive.recv().unwrap(), receive.recv().unwrap()];
        let mut asking = Asking::start(label).unwrap();
        let mut answers = 0;
        let begin = Instant::now();
        while answers < 400 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{answers} answers only");
            tids.iter().for_each(|tid| asking.ask(*tid, 0).unwrap());
            thread::sleep(Duration::from_micros(200));
            while asking.next(|_| answers += 1) {}
        }
        drop(asking);
        over.store(true, Ordering::Relaxed);
        // SAFETY: one byte that lives.
        assert_eq!(unsafe { libc::write(to, [7_u8].as_ptr().cast(), 1) }, 1);
        assert_eq!(reads.join().unwrap(), (1, 7), "the read went on");
    });
    // SAFETY: both descriptors are this test's own.
    unsafe { (libc::close(from), libc::close(to)) };
}

#[test]
fn a_forked_child_works_on_unsampled() {
    let _alone = alone();
    let mut sampling = Sampling::start(label).unwrap();
    let timer = sampling.watch(thread_id(), 1_000, 0).unwrap();
    for _ in 0..20 {
        // More than a tick of the slowest kernel (10 ms) in all: timers of CPU time are looked at then.
        let begin = thread_cpu_ns();
        while thread_cpu_ns() - begin < 3_000_000 {
            spin();
        }
        // SAFETY: the child only computes and ends; it allocates nothing and takes no lock.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            (0..200).for_each(|_| spin());
            // SAFETY: ends the child at once, without the destructors that are the parent's.
            unsafe { libc::_exit(7) };
        }
        let mut status = 0;
        // SAFETY: the child is this process's own; `status` has room for the answer.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    }
    drop(timer);
    let mut samples = 0;
    while sampling.next(|_| samples += 1) {}
    assert!(samples > 0, "the parent is sampled meanwhile");
}
