//! What `dflash doctor` takes.

use std::path::PathBuf;

/// Options and arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A target's directory: load it, and let it answer the question
    pub model: Option<PathBuf>,
    /// Training data for it, a folder of shards or a JSONL file of conversations: run every guard on the two
    #[arg(requires = "mask_token_id")]
    pub data: Option<PathBuf>,
    /// With DATA: the token id that stands for "to be predicted"
    #[arg(long, value_name = "ID")]
    pub mask_token_id: Option<i64>,
    /// With DATA: tokens of a block
    #[arg(long, value_name = "TOKENS", default_value_t = 16)]
    pub block_size: usize,
    /// With DATA: layers of the drafter, and taps of the target
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub layers: usize,
    /// The question
    #[arg(long, default_value = "What is the capital of France?")]
    pub ask: String,
}
