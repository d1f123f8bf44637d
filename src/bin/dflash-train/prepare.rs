//! `dflash prepare`: the target answers the training prompts; the texts become shards.

use crate::exit;
use crate::show::Bar;
use anyhow::Result;
use dflash::args::prepare::Args;
use dflash::output;
use dflash_trainer::config::Config;
use dflash_trainer::prepare;
use std::process::ExitCode;

pub fn run(args: &Args) -> Result<ExitCode> {
    let config = Config::load(&args.config)?;
    let bar = Bar::new("prepare");
    let prepared = prepare::prepare(&config, args.force, &mut |p| {
        bar.show(p.answered as u64, p.prompts as u64, || format!("{} tokens, {:.0}/s", p.tokens, bar.rate(p.tokens)));
    });
    bar.finish();
    let prepared = prepared.map_err(exit::trainer)?;
    let shards = config.data.shards.display();
    let text = if prepared.cached {
        format!("{shards}: {} samples were there already, made from the same input\n", prepared.samples)
    } else {
        let (samples, tokens, supervised) = (prepared.samples, prepared.tokens, prepared.supervised);
        let (rows, filter) = (prepared.rows, prepared.filter);
        format!("{shards}: {samples} samples, {tokens} tokens, {supervised} of them supervised\n{rows}\n{filter}\n")
    };
    output::print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
