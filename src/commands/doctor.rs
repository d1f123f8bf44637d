//! `dflash doctor`: what this installation can use, whether a model loads and answers, and whether it may be trained for.

use crate::exit;
use crate::output;
use anyhow::Result;
use dflash_trainer::doctor::{self, GuardOptions};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// A target's directory: load it, and let it answer the question
    model: Option<PathBuf>,
    /// Training data for it, a folder of shards or a JSONL file of conversations: run every guard on the two
    #[arg(requires = "mask_token_id")]
    data: Option<PathBuf>,
    /// With DATA: the token id that stands for "to be predicted"
    #[arg(long, value_name = "ID")]
    mask_token_id: Option<i64>,
    /// With DATA: tokens of a block
    #[arg(long, value_name = "TOKENS", default_value_t = 16)]
    block_size: usize,
    /// With DATA: layers of the drafter, and taps of the target
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    layers: usize,
    /// The question
    #[arg(long, default_value = "What is the capital of France?")]
    ask: String,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let line = |what: &str, found: &str| output::print(format!("{what:<12} {found}\n").as_bytes());
    for (what, found) in doctor::installation() {
        line(what, &found)?;
    }
    if let (Some(model), Some(data), Some(mask_token_id)) = (&args.model, &args.data, args.mask_token_id) {
        let options = GuardOptions { mask_token_id, block_size: args.block_size, layers: args.layers };
        let mut fine = true;
        for (guard, verdict) in doctor::guard(model, data, &options).map_err(exit::trainer)? {
            fine &= verdict.is_ok();
            line(guard, &verdict.err().map_or_else(|| "fine".to_owned(), |fault| fault.problem))?;
        }
        return Ok(ExitCode::from(if fine { exit::FINE } else { exit::BAD_INPUT }));
    }
    if let Some(model) = &args.model {
        let answer = doctor::ask(model, &args.ask).map_err(exit::trainer)?;
        line("question", &args.ask)?;
        line("answer", &answer)?;
    }
    Ok(ExitCode::SUCCESS)
}
