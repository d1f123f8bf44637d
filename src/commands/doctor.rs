//! `dflash doctor`: what this installation can use, and whether a model loads and answers.

use crate::exit;
use crate::output;
use anyhow::Result;
use dflash_trainer::doctor;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// A target's directory: load it, and let it answer the question
    model: Option<PathBuf>,
    /// The question
    #[arg(long, default_value = "What is the capital of France?")]
    ask: String,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let line = |what: &str, found: &str| output::print(format!("{what:<10} {found}\n").as_bytes());
    for (what, found) in doctor::installation() {
        line(what, &found)?;
    }
    if let Some(model) = &args.model {
        let answer = doctor::ask(model, &args.ask).map_err(exit::trainer)?;
        line("question", &args.ask)?;
        line("answer", &answer)?;
    }
    Ok(ExitCode::SUCCESS)
}
