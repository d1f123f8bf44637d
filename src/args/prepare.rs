//! What `dflash prepare` takes.

use std::path::PathBuf;

/// Options and arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, e.g. configs/demo.toml
    pub config: PathBuf,
    /// Replace shards that were made from other input
    #[arg(long)]
    pub force: bool,
}
