//! What `dflash top` shows, without a terminal and without a training.

mod frames;
mod fuzz;
mod recorded;
mod shown;
mod synthetic;
