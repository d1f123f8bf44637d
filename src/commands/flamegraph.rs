//! `dflash flamegraph`: where a run's time went, as a picture or for other viewers.

use crate::output::{OutputArg, say};
use crate::run_arg::RunArg;
use crate::select_arg::SelectArg;
use anyhow::bail;
use dflash_reports::flamegraph::{By, Change, Graph, Options, Time};
use dflash_reports::text::{duration, harmless};
use dflash_reports::timeline::{RunDir, Timeline};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// What the widths are
    #[arg(long, value_enum, default_value_t = TimeArg::Wall)]
    time: TimeArg,
    /// What stands together
    #[arg(long, value_enum, default_value_t = ByArg::Lane)]
    by: ByArg,
    /// Show what changed since this run: red takes longer. It is scaled to RUN's number of iterations
    #[arg(long, value_name = "BASE")]
    diff: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
    #[command(flatten)]
    select: SelectArg,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A picture that zooms and searches, for a browser
    Svg,
    /// Lines `lane;stage;child nanoseconds` (or samples) for other tools; with --diff two numbers
    Folded,
    /// JSON for www.speedscope.app
    Speedscope,
    /// A profile for `go tool pprof`
    Pprof,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TimeArg {
    /// Spans of each lane, waits and residue included
    Wall,
    /// What each lane's stream did, and the gaps by cause
    Device,
    /// Samples of the CPU, below the spans that were open (`dflash ctl cpu` takes them)
    Cpu,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ByArg {
    /// Each lane for itself
    Lane,
    /// Lanes of one role of a rank together
    Rank,
    /// Lanes of one role together, of all ranks
    Merged,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    args.output.check()?;
    if args.format == Format::Pprof && args.output.is_terminal() {
        bail!("a pprof profile is no text for a terminal; name a file with -o, such as -o profile.pb.gz");
    }
    let graph = gather(args, &run)?;
    let name = harmless(&run.name());
    match &args.diff {
        Some(base) => change(args, &name, base, &graph)?,
        None => write(args, &name, &graph)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn time(args: &Args) -> Time {
    match args.time {
        TimeArg::Wall => Time::Wall,
        TimeArg::Device => Time::Device,
        TimeArg::Cpu => Time::Cpu,
    }
}

fn gather(args: &Args, run: &RunDir) -> anyhow::Result<Graph> {
    let by = match args.by {
        ByArg::Lane => By::Lane,
        ByArg::Rank => By::Rank,
        ByArg::Merged => By::Merged,
    };
    let (graph, timeline) = Graph::of_run(run, &args.select.selection(), time(args), by)?;
    say_what_lacks(run, &timeline);
    Ok(graph)
}

fn options(args: &Args, title: String, subtitle: Option<String>) -> Options {
    Options { time: time(args), title, subtitle, ..Options::default() }
}

fn write(args: &Args, name: &str, graph: &Graph) -> anyhow::Result<()> {
    let stands = match args.by {
        ByArg::Lane => "lane",
        ByArg::Rank => "rank and role",
        ByArg::Merged => "role",
    };
    let title = format!("{name}: {} time by {stands}", time(args).as_str());
    args.output.write_with(|out| {
        match args.format {
            Format::Svg => out.write_all(&graph.svg(&options(args, title, None))?)?,
            Format::Folded => graph.write_folded(out)?,
            Format::Speedscope => graph.write_speedscope(&title, out)?,
            Format::Pprof => graph.write_pprof(out)?,
        }
        Ok(())
    })
}

fn change(args: &Args, name: &str, base: &PathBuf, graph: &Graph) -> anyhow::Result<()> {
    if !matches!(args.format, Format::Svg | Format::Folded) {
        bail!("--diff is drawn as SVG or written as folded stacks; leave --format out, or say --format folded");
    }
    let base_run = args.run.resolve_other(base)?;
    let base_name = harmless(&base_run.name());
    let change = Change::between(&gather(args, &base_run)?, graph);
    let (before, after) = change.totals();
    let written = |weight| if time(args) == Time::Cpu { format!("{weight} samples") } else { duration(weight) };
    let percent = 100.0 * (after as f64 - before as f64) / (before as f64).max(1.0);
    let title = format!("{name} against {base_name}: {} time", time(args).as_str());
    let subtitle = format!(
        "{} against {} ({percent:+.1} %), {base_name} scaled to as many iterations; changes below are parts of {name}",
        written(after),
        written(before)
    );
    args.output.write_with(|out| {
        match args.format {
            Format::Folded => change.write_folded(out)?,
            _ => out.write_all(&change.svg(&options(args, title, Some(subtitle)))?)?,
        }
        Ok(())
    })?;
    match change.vanished() {
        0 => {}
        gone => say(&format!("dflash: {gone} frames of {base_name} are not in {name}, and so nowhere in the picture")),
    }
    Ok(())
}

fn say_what_lacks(run: &RunDir, timeline: &Timeline) {
    if !timeline.health.ended {
        let name = harmless(&run.name());
        say(&format!(
            "dflash: warning: the timeline of {name} has no end yet: the graph shows what was written so far"
        ));
    }
    for problem in &timeline.health.problems {
        say(&format!("dflash: warning: {}", harmless(problem)));
    }
}
