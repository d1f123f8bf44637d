//! Shows a run while another thread of the program panics after a second: the terminal must be as before, with the
//! panic's message on it. `cargo run -p dflash-tui --example panics -- RUN [inside]`; the real terminal's test does.

use std::error::Error;
use std::thread;
use std::time::Duration;

use dflash_reports::timeline::RunDir;

fn main() -> Result<(), Box<dyn Error>> {
    let run = std::env::args_os().nth(1).ok_or("name a run")?;
    let run = RunDir::open(run)?;
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(1));
        panic!("a thread that fails");
    });
    let mut options = dflash_tui::Options::default();
    // As a training shows itself: stderr is taken too.
    options.inside = std::env::args().nth(2).map(|_| dflash_tui::Inside::default());
    Ok(dflash_tui::run(run, &options).map(drop)?)
}
