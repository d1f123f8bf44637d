//! `dflash trace`: a run for the trace viewers that there are.

use crate::output::{OutputArg, say};
use crate::run_arg::RunArg;
use crate::select_arg::SelectArg;
use anyhow::bail;
use dflash_reports::text::harmless;
use dflash_reports::timeline::{State, Timeline};
use dflash_reports::trace::{Counts, Options, Source, chrome, perfetto};
use std::process::ExitCode;

/// What is in the file, and how to open it.
const ABOUT: &str = "\
A process per rank, below it a thread per lane, the GPUs with what each lane did on them, items on
their way between lanes, and the counters; arrows lead from each put to its take. Open the file in
ui.perfetto.dev (it stays on this machine), or in chrome://tracing after --chrome.";

#[derive(clap::Args, Debug)]
#[command(after_help = ABOUT)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Chrome's JSON, with the kernel captures (`dflash ctl kernels` takes them) merged in
    #[arg(long)]
    chrome: bool,
    #[command(flatten)]
    select: SelectArg,
    #[command(flatten)]
    output: OutputArg,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    args.output.check()?;
    if args.output.is_terminal() && !args.chrome {
        bail!("a trace is no text for a terminal; name a file with -o, such as -o {}.pftrace", harmless(&run.name()));
    }
    let (source, window) = Source::open(&run, &args.select.selection())?;
    let live = matches!(run.state(), Ok(State::Running));
    let options = Options { window, name: run.name(), live };
    let (counts, problems) = args.output.write_with(|mut out| {
        Ok(if args.chrome {
            chrome(&source, &options, Some(&run), &mut out)?
        } else {
            (perfetto(&source, &options, &mut out)?, Vec::new())
        })
    })?;
    say_what_lacks(source.head(), &options, &counts, &problems);
    Ok(ExitCode::SUCCESS)
}

fn say_what_lacks(timeline: &Timeline, options: &Options, counts: &Counts, problems: &[String]) {
    if !timeline.health.ended {
        let why = if options.live { "the run goes on" } else { "the timeline has no end: it is torn" };
        say(&format!("dflash: warning: {why}; the trace holds what was written so far"));
    }
    let health = timeline.health.problems.iter().chain(problems).map(String::as_str);
    health.for_each(|problem| say(&format!("dflash: warning: {}", harmless(problem))));
    counts.concerns().iter().for_each(|concern| say(&format!("dflash: warning: {concern}")));
    if counts.slices == 0 {
        say("dflash: warning: there is no span in this part of the run");
    }
}
