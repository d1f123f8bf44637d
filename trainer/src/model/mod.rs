//! What target and drafter share: reading weights, norms, rotary positions, attention.

pub mod attention;
pub mod files;
pub mod layers;
pub mod rope;

pub use files::{ModelError, Weights};
pub use layers::{Linear, Mlp, RmsNorm, linear};
pub use rope::{Rope, RopeScaling};
