//! `dflash ctl`: looks at a run that goes on, and asks things of it.

use crate::exit::WhileRunning;
use crate::output::{no_color, print, say};
use crate::run_arg::RunArg;
use dflash_reports::control;
use dflash_reports::text::{Look, harmless};
use dflash_reports::timeline::control::{Answer, Ask, Client, Error};
use std::io::IsTerminal;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// The process of the run to ask, of a run that has several
    #[arg(long, default_value_t = 0, global = true)]
    rank: u32,
    /// Print the answer as it comes: one line of JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// What every lane does now, what was recorded and lost, what the profiler costs
    Status,
    /// Record more or less from now on
    Level {
        /// How much
        level: LevelName,
    },
    /// Put a note into the timeline
    Mark {
        /// What it says
        text: String,
        /// A loud one
        #[arg(long)]
        warning: bool,
    },
    /// Sample where the CPU time goes: start, stop, or for so many seconds
    Cpu {
        /// Begin, end and report, or both with so many seconds between
        #[arg(value_name = "start|stop|SECONDS", value_parser = cpu)]
        what: Cpu,
        /// Samples a second of each thread
        #[arg(default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
        hz: u32,
    },
    /// Print what every thread does now: its spans and its functions
    Stacks,
    /// Capture the kernels of the next iterations into a Chrome trace in the run directory
    Kernels {
        /// How many iterations, whole ones, of the drafter's lane
        #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
        iterations: u64,
        /// Return once it has begun; a mark in the timeline says when the file is written
        #[arg(long)]
        no_wait: bool,
    },
    /// Write the drafter as it is after the step that runs
    Checkpoint {
        /// Return at once; a mark in the timeline says when it is written
        #[arg(long)]
        no_wait: bool,
    },
    /// End the training after the step that runs, as Ctrl-C does: what has been learnt is kept
    Stop,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum LevelName {
    /// Nothing
    Off,
    /// Iterations and their stages
    Stages,
    /// Also what lies below a stage
    Layers,
}

#[derive(Clone, Copy, Debug)]
enum Cpu {
    Start,
    Stop,
    For(f64),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    let answer = Client::connect(&run, args.rank, "ctl").and_then(|mut client| {
        let mut said = String::new();
        client.ask(args.what.ask(), &mut |progress| {
            if !args.json && progress != said {
                said = progress.to_owned();
                say(&harmless(progress));
            }
        })
    });
    let answer = match answer {
        Ok(answer) => answer,
        Err(Error::Refused(text)) if args.json => {
            print(Answer::Error(text).line().as_bytes())?;
            return Ok(ExitCode::from(crate::exit::FAILED));
        }
        Err(error) if error.is_bad_input() => return Err(error.into()),
        Err(error) => return Err(WhileRunning(error.into()).into()),
    };
    let text = if args.json { answer.line() } else { text(&answer) };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl What {
    fn ask(&self) -> Ask {
        match self {
            Self::Status => Ask::Status,
            Self::Level { level } => Ask::Level { level: level.name().to_owned() },
            Self::Mark { text, warning } => Ask::Mark { text: text.clone(), warning: *warning },
            Self::Cpu { what: Cpu::Start, hz } => Ask::CpuStart { hz: *hz },
            Self::Cpu { what: Cpu::Stop, .. } => Ask::CpuStop,
            Self::Cpu { what: Cpu::For(seconds), hz } => Ask::Cpu { seconds: *seconds, hz: *hz },
            Self::Stacks => Ask::Stacks,
            Self::Kernels { iterations, no_wait } => Ask::Kernels { iterations: *iterations, wait: !no_wait },
            Self::Checkpoint { no_wait } => Ask::Checkpoint { wait: !no_wait },
            Self::Stop => Ask::Stop,
        }
    }
}

impl LevelName {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Stages => "stages",
            Self::Layers => "layers",
        }
    }
}

fn text(answer: &Answer) -> String {
    let look = Look { color: std::io::stdout().is_terminal() && !no_color() };
    match answer {
        Answer::Status(status) => control::status(status, look),
        Answer::Stacks(threads) => control::stacks(threads, look),
        Answer::Cpu(report) => control::cpu(report),
        Answer::File(file) => format!("{}\n", file.display()),
        Answer::Done(text) | Answer::Progress(text) | Answer::Error(text) => harmless(text) + "\n",
    }
}

fn cpu(text: &str) -> Result<Cpu, String> {
    match text {
        "start" => Ok(Cpu::Start),
        "stop" => Ok(Cpu::Stop),
        seconds => {
            let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 3600.0);
            seconds.map(Cpu::For).ok_or_else(|| "give start, stop, or seconds up to 3600".to_owned())
        }
    }
}
