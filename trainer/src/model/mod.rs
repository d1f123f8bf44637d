//! What target and drafter share: reading weights, norms, rotary positions, attention.

pub mod attention;
pub mod files;
pub mod kernels;
pub mod layers;
mod padding;
pub mod rope;

pub use files::{ModelError, Weights};
pub use layers::{Linear, Mlp, RmsNorm, linear};
pub use padding::pad_rows;
pub use rope::{Rope, RopeScaling};
