#![doc = include_str!("../README.md")]

pub mod at_once;
pub mod floor;
pub mod ours;
pub mod peers;
pub mod rounds;
pub mod stats;
pub mod stream;
pub mod subject;
pub mod table;
pub mod targets;
