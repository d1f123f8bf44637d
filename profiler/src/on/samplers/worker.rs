//! A sampler's thread: it rests between its turns, ends promptly when told, and is left behind if a call blocks it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that runs.
#[derive(Debug)]
pub(crate) struct Worker {
    name: &'static str,
    thread: JoinHandle<()>,
    /// Dropped to say "end".
    stop: Option<Sender<()>>,
    /// Closed by the thread's end, whatever the reason.
    ended: Receiver<()>,
}

/// The thread's side.
#[derive(Debug)]
pub(crate) struct Stop(Receiver<()>);

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself or because it was told.
    Done,
    /// It panicked.
    Panicked,
    /// It did not in time: it still hangs in a call.
    LeftBehind,
}

impl Stop {
    /// Rests; false once the thread is to end. Begins no rest that has no length, but looks whether it is to end.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}

impl Worker {
    pub(crate) fn start(name: &'static str, body: impl FnOnce(&Stop) + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (ending, ended) = channel::<()>();
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let _ending = ending;
            body(&Stop(stopped));
        })?;
        Ok(Self { name, thread, stop: Some(stop), ended })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Tells the thread to end, without waiting for it.
    pub(crate) fn tell(&mut self) {
        self.stop = None;
    }

    /// Tells the thread to end, and waits for that so long.
    pub(crate) fn end(mut self, within: Duration) -> End {
        self.tell();
        match self.ended.recv_timeout(within) {
            Err(RecvTimeoutError::Timeout) => End::LeftBehind,
            // The rest of its end takes microseconds.
            _ if self.thread.join().is_err() => End::Panicked,
            _ => End::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::{End, Worker};

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_resting_thread_ends_at_once() {
        let (tell, told) = channel();
        let worker = Worker::start("test-rest", move |stop| {
            while stop.rest(LONG) {}
            tell.send(std::thread::current().name().map(str::to_owned)).unwrap();
        });
        assert_eq!(worker.unwrap().end(LONG), End::Done);
        assert_eq!(told.recv().unwrap().as_deref(), Some("test-rest"));
    }

    #[test]
    fn a_thread_that_hangs_in_a_call_is_left_behind() {
        let (release, call) = channel::<()>();
        let worker = Worker::start("test-hang", move |_| {
            let _ = call.recv();
        })
        .unwrap();
        // If the end waited for the call, it would wait for ever: the call returns after it.
        assert_eq!(worker.end(Duration::from_millis(20)), End::LeftBehind);
        drop(release);
    }

    #[test]
    fn a_panic_is_an_end() {
        let worker = Worker::start("test-panic", |_| panic!("on purpose")).unwrap();
        assert_eq!(worker.end(LONG), End::Panicked);
        assert_eq!(Worker::start("test-done", |_| {}).unwrap().end(LONG), End::Done);
    }
}
