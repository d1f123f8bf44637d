//! `dflash doctor`: what this installation can use, whether a model loads and answers, and whether it may be trained for.

use crate::exit;
use anyhow::Result;
use dflash::args::doctor::Args;
use dflash::output;
use dflash_trainer::doctor::{self, GuardOptions};
use std::process::ExitCode;

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
