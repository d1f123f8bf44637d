//! What people see while something long runs: a bar on a terminal, lines elsewhere.

mod bar;
mod watcher;

pub use bar::Bar;
pub use watcher::{LogFormat, Watcher};
