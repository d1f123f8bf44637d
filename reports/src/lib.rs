#![doc = include_str!("../README.md")]

pub mod allocator;
pub mod control;
pub mod counters;
pub mod diff;
pub mod dump;
mod error;
pub mod flamegraph;
mod forest;
pub mod gaps;
pub mod goodput;
pub mod gpu;
pub mod handoffs;
pub mod history;
mod intervals;
pub mod kernels;
mod passes;
pub mod queues;
pub mod report;
pub mod runs;
pub mod samples;
mod scope;
mod sorted;
pub mod sources;
pub mod stages;
pub mod stats;
pub mod stragglers;
mod survey;
pub mod text;
pub mod trace;
mod values;
pub mod verdict;
mod walk;
pub mod window;
mod words;

pub use dflash_timeline as timeline;
pub use error::{Error, Result};
