//! The drafter: its shape, its forward pass, the anchors that it is trained at, its files.

pub mod anchors;
mod block;
mod blocks;
mod config;
mod config_file;
mod context;
mod files;
mod layer;
mod mask;
mod model;
mod noise;
mod pass;
mod row;
mod same;
mod unsupported;
mod visible;
mod walk;

pub use blocks::{Blocks, Layout, Slots, layout};
pub use config::{DrafterConfig, Sliding, target_layer_ids};
pub use context::ContextCache;
pub use files::{load, write_into};
pub use mask::BlockMask;
pub use model::{DFlashDrafter, Init};
pub use noise::Noise;
pub use pass::Pass;
pub use row::{Packed, Row, packed};
