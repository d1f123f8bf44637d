//! `dflash top` of a run that is over, in a real terminal: played, held, gone through, compared.

use super::support::recorded_run;
use super::terminal::terminal;

#[test]
fn a_finished_run_is_played_held_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let Some(terminal) = terminal(dir.path(), 120, 40) else { return };
    let (fast, slow) = (recorded_run(dir.path(), "fast", 1.0), recorded_run(dir.path(), "slow", 1.5));
    let program = env!("CARGO_BIN_EXE_dflash");
    // Played so slowly that it is not over before it has been looked at, however busy the machine is.
    terminal.line(&format!("'{program}' top {} --baseline {} --interval 0.2", slow.name(), fast.name()));
    terminal.wait("finished");
    (0..6).for_each(|_| terminal.type_in("<"));
    terminal.type_in("p");
    terminal.wait("PLAYS at");
    terminal.type_in(">");
    terminal.wait_for("twice its speed", |screen| screen.contains("x1/32"));
    terminal.type_in("p");
    let held = terminal.wait("PAUSED at");
    terminal.type_in("}");
    terminal.wait_for("ten steps on", |screen| screen.contains("PAUSED at") && percent(screen) > percent(&held));
    terminal.type_in("{");
    terminal.wait_for("ten steps back", |screen| percent(screen) <= percent(&held).map(|at| at + 1));
    terminal.type_in("}");
    terminal.type_in("2");
    terminal.wait_for("the change", |screen| screen.contains("change") && screen.contains("drafter.backward"));
    terminal.type_in("b");
    terminal.wait_for("no change", |screen| !screen.contains("change"));
    terminal.type_in("q");
    terminal.wait_for("the shell", |_| terminal.modes() == "0 1 0");
}

/// How far it has been played.
fn percent(screen: &str) -> Option<u32> {
    let (_, rest) = screen.split_once("PAUSED at ")?;
    rest.trim_start_matches('<').split_whitespace().next()?.parse().ok()
}
