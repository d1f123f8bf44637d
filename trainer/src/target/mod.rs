//! The frozen target: Llama, Qwen2 and Qwen3 from a Hugging Face directory.

mod cache;
mod config;
mod generate;
mod layer;
mod loader;
mod model;
mod sampling;
mod shapes;

pub use cache::KvCache;
pub use config::{Family, TargetConfig};
pub use generate::{Answer, GenerateOptions, generate};
pub use model::{Features, Target};
pub use sampling::Sampling;
pub(crate) use sampling::by_weight;
