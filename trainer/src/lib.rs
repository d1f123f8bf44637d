#![doc = include_str!("../README.md")]

pub mod candidates;
pub mod checkpoint;
pub mod config;
pub mod data;
pub mod device;
mod disk;
pub mod doctor;
pub mod drafter;
mod error;
pub mod eval;
pub mod events;
pub mod features;
pub mod guards;
pub mod instrument;
pub mod loss;
pub mod model;
pub mod optim;
pub mod pipeline;
pub mod prepare;
pub mod ranks;
pub mod session;
pub mod target;
mod text_tools;

pub use error::TrainError;
pub use text_tools::TextTools;
