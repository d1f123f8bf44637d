//! Asks a run why its timeline does not grow any more, on a thread of its own: a process that hangs does not answer.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use dflash_reports::timeline::{Manifest, RunDir, State};

/// How often a run that is silent is asked.
const EVERY: Duration = Duration::from_secs(5);

/// What is known of why a run is silent.
#[derive(Default)]
pub(super) struct Asking {
    found: Option<String>,
    last: Option<Instant>,
    under_way: Option<Receiver<Option<String>>>,
}

impl Asking {
    /// The last answer, if the run is still silent; asks anew when it is time.
    pub(super) fn poll(&mut self, run: &RunDir, manifest: &Manifest, state: State) -> Option<String> {
        if !dflash_reports::is_suspicious(run, manifest, state) {
            self.found = None;
            return None;
        }
        match self.under_way.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => {}
            Some(answer) => {
                self.under_way = None;
                self.found = answer.ok().flatten();
            }
            None if self.last.is_none_or(|last| last.elapsed() >= EVERY) => self.ask(run, manifest, state),
            None => {}
        }
        self.found.clone()
    }

    /// Waits for the answer, if one is under way.
    pub(super) fn settle(&mut self) -> Option<String> {
        if let Some(answer) = self.under_way.take() {
            self.found = answer.recv().ok().flatten();
        }
        self.found.clone()
    }

    fn ask(&mut self, run: &RunDir, manifest: &Manifest, state: State) {
        self.last = Some(Instant::now());
        let (sender, answer) = channel();
        let (run, manifest) = (run.clone(), manifest.clone());
        // The view may have ended when the answer comes.
        let work = move || drop(sender.send(dflash_reports::trouble(&run, &manifest, state)));
        let asked = thread::Builder::new().name("dflash-ask".to_owned()).spawn(work);
        self.under_way = asked.is_ok().then_some(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;
    use std::time::{Duration, Instant, SystemTime};

    use dflash_reports::timeline::control::{Answer, Status};
    use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter};

    use super::super::RunSource;
    use crate::state::Look;

    #[test]
    fn a_run_that_is_silent_is_asked_and_its_answer_is_shown() {
        // A socket's path is short, that of the temporary directory need not be.
        let parent = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let mut manifest = Manifest::default();
        manifest.started_unix_ns = 1;
        manifest.control = Some(parent.path().join("a.sock"));
        let run = RunDir::create(parent.path(), "full", manifest).expect("a run can be made");
        SegmentWriter::create(&run, 0, 1 << 20)
            .expect("it has a timeline")
            .flush(&[], Default::default())
            .expect("a block");
        let listener = UnixListener::bind(parent.path().join("a.sock")).expect("a socket");
        thread::spawn(move || {
            let status = Status { trouble: Some("no space left".into()), ..Status::default() };
            let answer = Answer::Status(Box::new(status)).line();
            // Who has lost patience with a busy machine has gone, and asks again.
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("it is asked"));
                let _ =
                    stream.read_line(&mut String::new()).and_then(|_| stream.get_mut().write_all(answer.as_bytes()));
            }
        });
        let file = File::options().append(true).open(run.timeline_dir().join("rank0-000001.dft")).expect("a segment");
        // Dates of files are what counts. One in the future stays new, however long this test is kept waiting.
        let date = |at: SystemTime| file.set_modified(at).expect("it can be dated");
        let hour = Duration::from_secs(3600);
        date(SystemTime::now() + hour);
        let mut source = RunSource::open(run.clone()).expect("it can be opened");
        source.poll();
        assert_eq!(source.manifest().trouble, None, "what has just been written grows");
        date(SystemTime::now() - hour);
        let begin = Instant::now();
        while source.manifest().trouble.is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it is never asked");
            source.poll();
            thread::sleep(Duration::from_millis(5));
        }
        let model = source.model(&Look::default());
        assert_eq!(model.run.trouble.as_deref(), Some("no space left"));
        assert_eq!(model.losses.problems[0], "the recording is incomplete: no space left");
        date(SystemTime::now() + hour);
        source.poll();
        assert_eq!(source.manifest().trouble, None);
        // What is printed once waits for the answer; nobody listens any more, so that the age is all there is to say.
        std::fs::remove_file(parent.path().join("a.sock")).expect("there is a socket");
        date(SystemTime::now() - hour);
        let mut printed = RunSource::open(run).expect("it can be opened");
        printed.poll();
        printed.settle(&Look::default());
        let trouble = printed.model(&Look::default()).run.trouble.expect("it says so");
        assert!(trouble.starts_with("nothing has been recorded for 1 h"), "{trouble}");
    }
}
