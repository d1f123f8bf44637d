//! What people see while something long runs: a bar on a terminal, lines elsewhere.

mod bar;
mod beside;
mod watcher;

pub use bar::Bar;
pub use beside::Beside;
pub use watcher::Watcher;
