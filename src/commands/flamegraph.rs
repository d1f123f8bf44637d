//! `dflash flamegraph`: a run's wall time as a picture.

use crate::output::{OutputArg, say};
use crate::run_arg::RunArg;
use dflash_reports::flamegraph::{Options, folded_text, svg};
use dflash_reports::stages::Window;
use dflash_reports::text::harmless;
use dflash_reports::timeline;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// An SVG picture, or folded stacks (`lane;stage;child nanoseconds`) for other tools
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
    /// Only this lane, such as drafter:0 (may be given several times)
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Folded,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    args.output.check()?;
    let timeline = timeline::read(&run)?;
    let window = Window { lanes: args.lanes.clone(), ..Window::default() };
    let bytes = match args.format {
        Format::Folded => folded_text(&timeline, &window)?.into_bytes(),
        Format::Svg => {
            let title = format!("{}: wall time by lane", harmless(&run.name()));
            svg(&timeline, &Options { window, title, ..Options::default() })?
        }
    };
    args.output.write(&bytes)?;
    if !timeline.health.ended {
        say("dflash: warning: the timeline has no end yet: the graph shows what was written so far");
    }
    Ok(ExitCode::SUCCESS)
}
