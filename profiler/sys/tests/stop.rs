//! The two signals of a stop, in processes of their own.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the child: it is this very test binary.
const CHILD: &str = "DFLASH_SYS_STOP_CHILD";

/// How long anything may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that says which signal has asked it to stop.
struct Asked {
    process: Child,
    says: BufReader<ChildStdout>,
}

impl Asked {
    fn start(ignores_the_flag: bool) -> Self {
        Self::start_after(":", ignores_the_flag)
    }

    /// One that a shell starts, after it has done something.
    fn start_after(before: &str, ignores_the_flag: bool) -> Self {
        let me = std::env::current_exe().unwrap();
        let mode = if ignores_the_flag { "ignore" } else { "obey" };
        // Whoever runs the tests may have told them to ignore a hang-up.
        let mut command = Command::new("env");
        let script = format!("{before}; exec \"$0\" --exact child_of_the_others --nocapture");
        command.args(["--default-signal=HUP", "sh", "-c", &script]).arg(me);
        let mut process = command.env(CHILD, mode).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(process.stdout.take().unwrap());
        let mut child = Self { process, says };
        child.hears("ready");
        child
    }

    /// Waits for a line.
    fn hears(&mut self, words: &str) {
        let mut lines = self.says.by_ref().lines();
        assert!(lines.any(|line| line.unwrap().contains(words)), "the child never says {words}");
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success());
    }

    /// Sends a signal that the flag then shows. Two at once could be taken as one, or in the other order.
    fn is_asked_by(&mut self, name: &str, number: u8) {
        self.signal(name);
        self.hears(&format!("signal {number}."));
        self.goes_on(name);
    }

    /// Sends a signal that changes nothing, and waits until it has been delivered.
    fn is_not_moved_by(&mut self, name: &str) {
        self.signal(name);
        let begin = Instant::now();
        while self.signals("ShdPnd") | self.signals("SigPnd") != 0 {
            assert!(begin.elapsed() < PATIENCE, "{name} is never delivered");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.goes_on(name);
    }

    fn goes_on(&mut self, after: &str) {
        assert_eq!(self.process.try_wait().unwrap(), None, "it goes on after {after}");
    }

    /// One of the process's sets of signals, as the kernel shows them: bit 0 is signal 1.
    fn signals(&self, set: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':'));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    }

    fn code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

#[test]
fn child_of_the_others() {
    let Ok(mode) = std::env::var(CHILD) else { return };
    let flag = dflash_sys::install_stop_flag().unwrap();
    // Written past the test harness, which would keep it back.
    let say = |text: &str| writeln!(std::io::stdout().lock(), "{text}").unwrap();
    say("ready");
    let (begin, mut before) = (Instant::now(), None);
    while begin.elapsed() < 2 * PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
        let signal = flag.signal();
        if mode == "obey" && signal.is_some() {
            std::process::exit(flag.exit_code().unwrap_or(0).into());
        }
        if signal != before {
            before = signal;
            say(&format!("signal {}.", signal.unwrap_or(0)));
        }
    }
}

#[test]
fn the_first_signal_is_a_request() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-USR1", 0)] {
        let mut child = Asked::start(false);
        child.signal(name);
        assert_eq!(child.code(), Some(code));
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    let mut child = Asked::start(true);
    child.is_asked_by("-INT", 2);
    child.signal("-TERM");
    assert_eq!(child.code(), Some(143));
}

/// Queueing systems send SIGUSR1 some time before SIGTERM: the checkpoint that the first asked for must not be cut off.
#[test]
fn a_request_in_good_time_is_not_a_first_signal() {
    let mut child = Asked::start(true);
    child.is_asked_by("-USR1", 10);
    child.is_not_moved_by("-USR1");
    child.is_asked_by("-TERM", 15);
    child.signal("-TERM");
    assert_eq!(child.code(), Some(143));
}

/// The kernel and the shell both tell of a terminal that is gone, a service manager tells of it along with SIGTERM: the
/// checkpoint must not be cut off by either.
#[test]
fn a_hang_up_is_never_a_second_signal() {
    for (first, number) in [("-HUP", 1), ("-TERM", 15)] {
        let mut child = Asked::start(true);
        child.is_asked_by(first, number);
        child.is_not_moved_by("-HUP");
        child.is_not_moved_by("-HUP");
        if first == "-HUP" {
            // That is the first.
            child.is_asked_by("-TERM", 15);
            child.signal("-INT");
            assert_eq!(child.code(), Some(130));
        } else {
            child.signal("-TERM");
            assert_eq!(child.code(), Some(143));
        }
    }
}

#[test]
fn a_process_under_nohup_does_not_hear_of_it() {
    let mut child = Asked::start_after("trap '' HUP", true);
    assert_eq!(child.signals("SigIgn") & 1, 1, "it is not even delivered");
    child.is_not_moved_by("-HUP");
    child.signal("-TERM");
    let mut said = String::new();
    child.says.read_line(&mut said).unwrap();
    assert!(said.contains("signal 15."), "{said}");
    child.signal("-TERM");
    assert_eq!(child.code(), Some(143));
}
