//! The two signals of a stop, in processes of their own.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the child: it is this very test binary.
const CHILD: &str = "DFLASH_SYS_STOP_CHILD";

fn child(ignores_the_flag: bool) -> Child {
    child_after(":", ignores_the_flag)
}

/// One that a shell starts, after it has done something.
fn child_after(before: &str, ignores_the_flag: bool) -> Child {
    let me = std::env::current_exe().unwrap();
    let mode = if ignores_the_flag { "ignore" } else { "obey" };
    // Whoever runs the tests may have told them to ignore a hang-up.
    let mut command = Command::new("env");
    let script = format!("{before}; exec \"$0\" --exact child_of_the_others --nocapture");
    command.args(["--default-signal=HUP", "sh", "-c", &script]).arg(me);
    command.env(CHILD, mode).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("ready")), "the child never got ready");
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn child_of_the_others() {
    let Ok(mode) = std::env::var(CHILD) else { return };
    let flag = dflash_sys::install_stop_flag().unwrap();
    // Written past the test harness, which would keep it back.
    writeln!(std::io::stdout().lock(), "ready").unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(2));
        if mode == "obey" && flag.is_set() {
            std::process::exit(flag.exit_code().unwrap_or(0).into());
        }
    }
}

#[test]
fn the_first_signal_is_a_request() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-USR1", 0)] {
        let mut child = child(false);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    let mut child = child(true);
    signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "it goes on after the first");
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// Queueing systems send SIGUSR1 some time before SIGTERM: the checkpoint that the first asked for must not be cut off.
#[test]
fn a_request_in_good_time_is_not_a_first_signal() {
    let mut child = child(true);
    for name in ["-USR1", "-USR1", "-TERM"] {
        signal(&child, name);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(child.try_wait().unwrap(), None, "it goes on after {name}");
    }
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// The kernel and the shell both tell of a terminal that is gone, a service manager tells of it along with SIGTERM: the
/// checkpoint must not be cut off by either.
#[test]
fn a_hang_up_is_never_a_second_signal() {
    for first in ["-HUP", "-TERM"] {
        let mut child = child(true);
        for name in [first, "-HUP", "-HUP"] {
            signal(&child, name);
            std::thread::sleep(Duration::from_millis(200));
            assert_eq!(child.try_wait().unwrap(), None, "it goes on after {name}");
        }
        signal(&child, "-TERM");
        std::thread::sleep(Duration::from_millis(200));
        if first == "-HUP" {
            assert_eq!(child.try_wait().unwrap(), None, "that was the first");
            signal(&child, "-INT");
        }
        assert_eq!(child.wait().unwrap().code(), Some(if first == "-HUP" { 130 } else { 143 }));
    }
}

#[test]
fn a_process_under_nohup_does_not_hear_of_it() {
    let mut child = child_after("trap '' HUP", false);
    signal(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
