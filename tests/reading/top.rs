//! `dflash top` in a real terminal: every view, every key, control of a run that goes on, and the terminal as it was
//! afterwards, however it ends.

use super::ctl::{Live, example_of};
use super::support::dflash;
use super::terminal::{Terminal, process_in, terminal};
use super::writing::Writing;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const VIEWS: [&str; 9] = ["Overview", "Stages", "Timeline", "Queues", "GPUs", "Threads", "Training", "Events", "Help"];

/// Bytes a second that a steady screen of 120x40 may send.
const MOST_BYTES: u64 = 4_000;

fn command(arguments: &str) -> String {
    format!("'{}' top {arguments}", env!("CARGO_BIN_EXE_dflash"))
}

#[test]
fn every_view_and_every_key_in_a_real_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 120, 40) else { return };
    let _writing = Writing::start(dir.path());
    let before = (terminal.settings(), terminal.modes());
    terminal.line(&command("--interval 0.2"));
    terminal.wait("alive");
    assert_eq!(terminal.modes(), "1 0 0", "another screen, no cursor, the mouse is the terminal's");
    for (number, view) in (1..).zip(VIEWS) {
        terminal.type_in(&number.to_string());
        terminal.wait(&format!(" {number} {view}"));
    }
    every_key(&terminal);
    // Whether the mouse is taken depends on how often m was among the keys.
    if terminal.modes() != "1 0 1" {
        terminal.type_in("m");
    }
    terminal.wait_for("the mouse", |_| terminal.modes() == "1 0 1");
    terminal.resize(50, 12);
    terminal.wait("60x15 needed");
    terminal.resize(100, 30);
    terminal.wait("alive");
    terminal.resize(120, 40);
    terminal.press(&["C-z"]);
    terminal.wait("Stopped");
    assert_eq!(terminal.modes(), "0 1 0", "a shell's terminal while it is stopped");
    terminal.line("fg");
    terminal.wait_for("the view", |screen| screen.contains("alive") && terminal.modes() == "1 0 1");
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
    assert_eq!((terminal.settings(), terminal.modes()), before);
}

/// Each key that can be typed, in each view; none of them ends it.
fn every_key(terminal: &Terminal) {
    // `/` and `M` begin a text: what follows them are letters.
    let letters: String = ('!'..='~').filter(|letter| !"q/M".contains(*letter)).collect();
    for (number, view) in (1..).zip(VIEWS) {
        terminal.type_until(&number.to_string(), &format!(" {number} {view}"));
        terminal.type_in(&letters);
        terminal.press(&["Tab", "BTab", "Up", "Down", "Left", "Right", "PPage", "NPage", "Home", "End", "Enter"]);
        terminal.press(&["BSpace", "C-l", "C-f", "C-b", "F1", "Space", "DC"]);
        terminal.type_until("/", "only rows with:");
        terminal.type_in("no such row");
        terminal.press(&["Enter"]);
        terminal.wait("/ only no such row");
        terminal.press(&["Escape"]);
        terminal.wait_for("all rows", |screen| !screen.contains("no such row"));
        assert_eq!(terminal.modes().split(' ').next(), Some("1"), "it goes on");
    }
}

/// Esc leaves what is open, and the program only from the overview; a stop from outside is as good as Ctrl-Z, and a
/// terminal that was written over while the program was stopped is drawn anew.
#[test]
fn escape_leads_out_step_by_step_and_stops_from_outside_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 120, 40) else { return };
    let _writing = Writing::start(dir.path());
    let before = (terminal.settings(), terminal.modes());
    terminal.line(&command("--interval 0.2"));
    terminal.wait("alive");
    let signal = |name: &str| {
        let id = process_in(dir.path()).to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    };
    signal("TSTP");
    terminal.wait("Stopped");
    assert_eq!(terminal.modes(), "0 1 0", "a shell's terminal while it is stopped");
    terminal.line("fg");
    terminal.wait_for("the view", |screen| screen.contains("alive") && terminal.modes() == "1 0 0");
    signal("STOP");
    terminal.wait_for("the shell", |screen| screen.trim_end().ends_with('$'));
    // The line is as the program left it: only a line feed ends what is typed.
    terminal.type_in("fg");
    terminal.press(&["C-j"]);
    terminal.wait_for("the view alone", |screen| screen.contains(" 1 Overview") && !screen.contains("$ fg"));
    assert_eq!(terminal.modes(), "1 0 0");
    for (key, shows) in [("2", " 2 Stages"), ("?", " 9 Help")] {
        terminal.type_until(key, shows);
    }
    terminal.press(&["Escape"]);
    terminal.wait(" 2 Stages");
    terminal.press(&["Escape"]);
    terminal.wait(" 1 Overview");
    terminal.press(&["Escape"]);
    // What is typed before the shell asks would go to the program that is about to end.
    terminal.wait_for("the prompt", |screen| screen.trim_end().lines().last().is_some_and(|line| line.trim() == "$"));
    terminal.line("echo code=$?");
    terminal.wait("code=0");
    assert_eq!((terminal.settings(), terminal.modes()), before);
}

/// Terminals that can show less, and a locale without UTF-8.
#[test]
fn a_poor_terminal_shows_ascii_without_colour() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 100, 30) else { return };
    let _writing = Writing::start(dir.path());
    for (environment, ascii) in
        [("TERM=linux LC_ALL=C", true), ("TERM=screen NO_COLOR=1", false), ("TERM=xterm", false)]
    {
        terminal.line("clear");
        terminal.line(&format!("env {environment} {}", command("")));
        let screen = terminal.wait("alive");
        assert_eq!(screen.is_ascii(), ascii, "{environment}:\n{screen}");
        terminal.type_in("q");
        terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
    }
}

#[test]
fn a_run_is_asked_from_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 120, 40) else { return };
    let mut live = Live::start(dir.path());
    terminal.line(&command("--interval 0.2"));
    terminal.wait("alive");
    terminal.type_in("T");
    terminal.wait("ask the run for stacks?");
    terminal.type_in("y");
    let stacks = terminal.wait("threads; Esc closes");
    assert!(stacks.contains("drafter:0"), "{stacks}");
    terminal.press(&["Escape"]);
    terminal.wait("one iteration by stage");
    terminal.type_in("L");
    terminal.wait("o off, s stages, l layers");
    terminal.type_in("l");
    terminal.wait("level: stages -> layers, by top");
    terminal.type_in("M");
    terminal.wait("a note for the timeline:");
    terminal.type_in("quite a mark");
    terminal.press(&["Enter"]);
    terminal.wait("marked");
    for (key, question, answer) in [
        ("K", "kernel capture of 3 iterations?", "written to"),
        ("W", "ask the run for checkpoint?", "checkpoint: written to"),
    ] {
        terminal.type_in(key);
        terminal.wait(question);
        terminal.type_in("n");
        terminal.wait_for("no question", |screen| !screen.contains(question));
        terminal.type_in(key);
        terminal.wait(question);
        terminal.type_in("y");
        terminal.wait(answer);
    }
    // It takes 30 s, and says all the while how many are left.
    terminal.type_in("C");
    terminal.wait("ask the run for CPU sampling for 30 s?");
    terminal.type_in("y");
    terminal.wait("sampling, ");
    terminal.type_in("8");
    terminal.wait("quite a mark");
    terminal.wait_for("the CPU samples", |screen| screen.contains(" samples"));
    // A run that ends at once may be gone before its answer is: what counts here is that it ends.
    dflash(dir.path(), &["ctl", "stop"]);
    assert!(live.process.wait().unwrap().success());
    terminal.wait("stopped");
    terminal.type_in("K");
    terminal.wait("the run is over: there is nobody to ask");
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
}

#[test]
fn the_terminal_is_as_before_whatever_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 100, 30) else { return };
    let _writing = Writing::start(dir.path());
    let before = (terminal.settings(), terminal.modes());
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        terminal.line("clear");
        terminal.line(&format!("{} --mouse; echo code=$?", command("")));
        terminal.wait_for("the view", |_| terminal.modes() == "1 0 1");
        let id = process_in(dir.path()).to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
        terminal.wait(&format!("code={code}"));
        assert_eq!((terminal.settings(), terminal.modes()), before, "SIG{signal}");
    }
    terminal.line("clear");
    terminal.line(&format!("{}; echo code=$?", command("")));
    terminal.wait("alive");
    terminal.press(&["C-c"]);
    terminal.wait("code=0");
    assert_eq!((terminal.settings(), terminal.modes()), before, "Ctrl-C");
    let panics = example_of("dflash-tui", "panics");
    for inside in ["", "inside"] {
        terminal.line("clear");
        terminal.line(&format!("'{}' runs/* {inside}; echo code=$?", panics.display()));
        let screen = terminal.wait("code=1");
        assert!(screen.contains("a thread that fails"), "the panic's own message stands there:\n{screen}");
        assert_eq!((terminal.settings(), terminal.modes()), before, "a panic {inside}");
    }
}

/// Bytes a second that the terminal is sent, over some seconds.
fn bytes_a_second(terminal: &Terminal) -> u64 {
    let (begin, before) = (Instant::now(), terminal.bytes());
    thread::sleep(Duration::from_secs(4));
    ((terminal.bytes() - before) as f64 / begin.elapsed().as_secs_f64()) as u64
}

/// A shell over a slow line is where this view must work.
#[test]
fn a_steady_screen_sends_little() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 120, 40) else { return };
    let _writing = Writing::start(dir.path());
    terminal.line(&command(""));
    terminal.wait("alive");
    // Until graphs and tables have filled.
    thread::sleep(Duration::from_secs(5));
    let mut sent = Vec::new();
    for number in [1, 2, 5] {
        terminal.type_in(&number.to_string());
        terminal.wait(&format!(" {number} {}", VIEWS[number - 1]));
        // A busy machine may draw the view late, or not at all for a while: of three stretches that is one.
        let mut stretches = [(); 3].map(|()| bytes_a_second(&terminal));
        stretches.sort_unstable();
        sent.push(stretches[1]);
    }
    assert!(sent.iter().all(|bytes| *bytes > 0), "the screen stands still: nothing was measured: {sent:?}");
    assert!(sent.iter().all(|bytes| *bytes < MOST_BYTES), "bytes a second of the views: {sent:?}");
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
}
