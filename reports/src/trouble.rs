//! Why a run's recording has stopped although the run has not: read where the run noted it, or asked of the run itself.
//!
//! A disk that is full takes no note either. So where nothing is noted and a rank's timeline does not grow any more while
//! its process lives, that process is asked over its control socket.

use crate::text::duration;
use dflash_timeline::control::{Answer, Ask, Client};
use dflash_timeline::{Manifest, RunDir, State};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A live timeline grows four times a second. With nothing for so long, something is wrong.
const QUIET: Duration = Duration::from_secs(10);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Quiet ranks of a run that are asked.
const MOST_ASKED: usize = 4;

/// In words, e.g. `the timeline is no longer written: …`; `None`: the recording goes on or has come to its end, as far as
/// can be told from here. May ask the run, which takes a moment.
#[must_use]
pub fn trouble(run: &RunDir, manifest: &Manifest, state: State) -> Option<String> {
    trouble_at(SystemTime::now(), PATIENCE, run, manifest, state)
}

/// The same at some time, with some patience.
fn trouble_at(now: SystemTime, patience: Duration, run: &RunDir, manifest: &Manifest, state: State) -> Option<String> {
    let noted = noted(run, manifest);
    if noted.is_some() || !may_ask(manifest, state) {
        return noted;
    }
    let quiet = quiet(now, run, manifest);
    let several = quiet.len() > 1 || quiet.iter().any(|(rank, _)| *rank > 0);
    let said = quiet.iter().take(MOST_ASKED).map(|(rank, age)| {
        let text = asked(run, *rank, patience).unwrap_or_else(|| {
            let age = duration(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
            format!("nothing has been recorded for {age}, though the run lives")
        });
        if several { format!("rank {rank}: {text}") } else { text }
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What the run's ranks themselves have noted of it: a look at a few files.
#[must_use]
pub fn noted(run: &RunDir, manifest: &Manifest) -> Option<String> {
    run.trouble_of_ranks(manifest.attempt, manifest.trouble.clone())
}

/// Whether something may be wrong that only the run itself can tell: a look at the dates of a few files. What its ranks have
/// [noted] is in `manifest` already.
#[must_use]
pub fn is_suspicious(run: &RunDir, manifest: &Manifest, state: State) -> bool {
    is_suspicious_at(SystemTime::now(), run, manifest, state)
}

fn is_suspicious_at(now: SystemTime, run: &RunDir, manifest: &Manifest, state: State) -> bool {
    manifest.trouble.is_none() && may_ask(manifest, state) && !quiet(now, run, manifest).is_empty()
}

/// Dates of files of another host say nothing here, and its processes cannot be asked.
fn may_ask(manifest: &Manifest, state: State) -> bool {
    state == State::Running && manifest.is_here()
}

/// The ranks whose timelines have not grown for a while, and for how long.
fn quiet(now: SystemTime, run: &RunDir, manifest: &Manifest) -> Vec<(u32, Duration)> {
    let begun = Duration::from_nanos(u64::try_from(manifest.started_unix_ns).unwrap_or(0));
    // A rank of an earlier attempt need not be there any more.
    let of_it = |at: &SystemTime| at.duration_since(UNIX_EPOCH).is_ok_and(|at| at >= begun);
    let written = run.written_at().unwrap_or_default().into_iter().filter(|(_, at)| of_it(at));
    // A date in the future is as good as new.
    let ages = written.map(|(rank, at)| (rank, now.duration_since(at).unwrap_or_default()));
    ages.filter(|(_, age)| *age >= QUIET).collect()
}

/// What a process says of its recording, if it answers and something is wrong.
fn asked(run: &RunDir, rank: u32, patience: Duration) -> Option<String> {
    let mut client = Client::connect(run, rank, "report").and_then(|client| client.patient_for(patience)).ok()?;
    match client.ask(Ask::Status, &mut |_| {}).ok()? {
        Answer::Status(status) => status.trouble,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_suspicious_at, trouble_at};
    use dflash_timeline::control::{Answer, Status};
    use dflash_timeline::{Manifest, RunDir, State};
    use std::fs::File;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    /// How long an answer may take on a machine that does other things too.
    const LONG: Duration = Duration::from_secs(60);

    /// A run of this process whose ranks wrote so many seconds before `now`, which no pause of the test moves.
    fn run(parent: &Path, now: SystemTime, ages: &[u64]) -> RunDir {
        let mut manifest = Manifest::default();
        manifest.started_unix_ns = 1_000_000_000;
        let run = RunDir::create(parent, "a", manifest).unwrap();
        for (rank, age) in ages.iter().enumerate() {
            let file = File::create(run.timeline_dir().join(format!("rank{rank}-000001.dft"))).unwrap();
            file.set_modified(now - Duration::from_secs(*age)).unwrap();
        }
        run
    }

    fn said(run: &RunDir, now: SystemTime, state: State) -> Option<String> {
        trouble_at(now, LONG, run, &run.manifest().unwrap(), state)
    }

    #[test]
    fn what_is_noted_is_said_and_what_grows_is_believed() {
        let (parent, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let run = run(parent.path(), now, &[1, 2]);
        assert_eq!(said(&run, now, State::Running), None);
        assert!(!is_suspicious_at(now, &run, &run.manifest().unwrap(), State::Running));
        run.amend_manifest(|manifest| manifest.trouble = Some("no room".into())).unwrap();
        assert_eq!(said(&run, now, State::Running).as_deref(), Some("no room"));
        assert_eq!(said(&run, now, State::Finished).as_deref(), Some("no room"), "also when it is over");
    }

    #[test]
    fn what_other_ranks_noted_is_said_with_their_names() {
        let (parent, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let run = run(parent.path(), now, &[1, 2, 3]);
        run.rank_trouble(2, 1).note("no room").unwrap();
        assert_eq!(said(&run, now, State::Finished).as_deref(), Some("rank 2: no room"));
        run.amend_manifest(|manifest| manifest.trouble = Some("read-only".into())).unwrap();
        run.rank_trouble(1, 1).note("gone").unwrap();
        assert_eq!(
            said(&run, now, State::Running).as_deref(),
            Some("rank 0: read-only; rank 1: gone; rank 2: no room")
        );
        let mut second = Manifest::default();
        second.attempt = 2;
        run.begin_attempt(second).unwrap();
        assert_eq!(said(&run, now, State::Running), None, "an earlier attempt's is not the next one's");
    }

    #[test]
    fn a_rank_that_is_quiet_is_asked() {
        // A socket's path is short, that of the temporary directory need not be.
        let (parent, now) = (tempfile::tempdir_in("/tmp").unwrap(), SystemTime::now());
        let run = run(parent.path(), now, &[1, 100]);
        assert!(is_suspicious_at(now, &run, &run.manifest().unwrap(), State::Running));
        let nobody = said(&run, now, State::Running).unwrap();
        assert_eq!(nobody, "rank 1: nothing has been recorded for 1 min 40 s, though the run lives");
        assert_eq!(said(&run, now, State::Finished), None, "what has ended is quiet");
        run.amend_manifest(|manifest| manifest.control = Some(parent.path().join("a.sock"))).unwrap();
        let listener = UnixListener::bind(parent.path().join("a.1.sock")).unwrap();
        let answering = std::thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            stream.read_line(&mut String::new()).unwrap();
            let status = Status { trouble: Some("the timeline is no longer written".into()), ..Status::default() };
            stream.get_mut().write_all(Answer::Status(Box::new(status)).line().as_bytes()).unwrap();
        });
        assert_eq!(said(&run, now, State::Running).as_deref(), Some("rank 1: the timeline is no longer written"));
        answering.join().unwrap();
    }

    #[test]
    fn a_rank_of_an_earlier_attempt_is_not_missed() {
        let (parent, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let run = run(parent.path(), now, &[1, 1000]);
        run.begin_attempt(Manifest::default()).unwrap();
        assert_eq!(said(&run, now, State::Running), None);
    }

    #[test]
    fn another_hosts_files_are_not_judged() {
        let (parent, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let run = run(parent.path(), now, &[1000]);
        run.amend_manifest(|manifest| manifest.host = "gpu-7".into()).unwrap();
        assert_eq!(said(&run, now, State::Running), None);
    }
}
