//! The drafter: its shape, its forward pass, the anchors that it is trained at, its files.

pub mod anchors;
mod block;
mod config;
mod context;
mod files;
mod model;
mod same;

pub use block::BlockMask;
pub use config::{DrafterConfig, target_layer_ids};
pub use context::ContextCache;
pub use files::{load, save, write_into};
pub use model::{DFlashDrafter, Init};
