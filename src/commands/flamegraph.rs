//! `dflash flamegraph`: a run's wall time, or its CPU samples, as a picture.

use crate::output::{OutputArg, say};
use crate::run_arg::RunArg;
use dflash_reports::flamegraph::{Options, Time, folded_text, svg};
use dflash_reports::stages::Window;
use dflash_reports::text::harmless;
use dflash_reports::timeline;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// An SVG picture, or folded stacks (`lane;stage;child nanoseconds`, or samples) for other tools
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
    /// What the widths are: wall time, or samples of the CPU (`dflash ctl cpu` takes them)
    #[arg(long, value_enum, default_value_t = TimeArg::Wall)]
    time: TimeArg,
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

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TimeArg {
    Wall,
    Cpu,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    args.output.check()?;
    let timeline = timeline::read(&run)?;
    let window = Window { lanes: args.lanes.clone(), ..Window::default() };
    let time = match args.time {
        TimeArg::Wall => Time::Wall,
        TimeArg::Cpu => Time::Cpu,
    };
    let bytes = match args.format {
        Format::Folded => folded_text(&timeline, &window, time)?.into_bytes(),
        Format::Svg => {
            let title = format!("{}: {} time by lane", harmless(&run.name()), time.as_str());
            svg(&timeline, &Options { window, time, title, ..Options::default() })?
        }
    };
    args.output.write(&bytes)?;
    if !timeline.health.ended {
        say("dflash: warning: the timeline has no end yet: the graph shows what was written so far");
    }
    Ok(ExitCode::SUCCESS)
}
