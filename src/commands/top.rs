//! `dflash top`: a run on one screen.

use crate::exit::WhileRunning;
use crate::output::OutputArg;
use crate::run_arg::RunsOfOne;
use dflash_reports::report::Report;
use dflash_reports::timeline::{self, RunDir};
use dflash_reports::window::{Length, Selection, TimeRange};
use dflash_tui::state::{View, WindowLength};
use dflash_tui::view::adapt::{Charset, Colors};
use dflash_tui::{End, Error, Options, Subject, frame, frame_svg, once, terminal_width};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunsOfOne,
    /// Print one frame and end; so it does when stdout is no terminal
    #[arg(long)]
    once: bool,
    /// Print the numbers instead, as `dflash report --format json` does, and end
    #[arg(long, conflicts_with_all = ["format", "view", "size"])]
    json: bool,
    /// How to print that frame
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The view to begin with, or to print [default: overview; as text, overview and stages]
    #[arg(long, value_enum)]
    view: Option<ViewName>,
    /// Average over this much of the newest recording: 10s, 1m, 10m or all; or over a stretch A..B of it, as in `dflash
    /// report` [default: 1m of a live run, all of a finished one and with --json]
    #[arg(long, value_name = "LENGTH|A..B", value_parser = window)]
    window: Option<WindowArg>,
    /// Seconds between two looks at the run
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Size of a printed frame, such as 120x36 [default: 120 columns, or the terminal's, and as many lines as it takes]
    #[arg(long, value_name = "COLUMNSxLINES", value_parser = size)]
    size: Option<(u16, u16)>,
    /// Draw with ASCII letters only, as it does where the locale is not UTF-8
    #[arg(long)]
    ascii: bool,
    /// Draw without colours, as it does where NO_COLOR is set
    #[arg(long)]
    no_color: bool,
    /// The terminal's background; `auto` asks COLORFGBG and takes it for dark where that says nothing
    #[arg(long, value_enum, default_value_t = Background::Auto)]
    background: Background,
    /// Compare the stages to those of this run (key b)
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
    /// Take the mouse from the beginning (key m); text can then be selected only with Shift
    #[arg(long)]
    mouse: bool,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Letters, without colours
    Text,
    /// A picture, in colour
    Svg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Background {
    Auto,
    Dark,
    Light,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ViewName {
    Overview,
    Stages,
    Timeline,
    Queues,
    Gpus,
    Threads,
    Training,
    Events,
    Help,
}

impl ViewName {
    fn view(self) -> View {
        match self {
            Self::Overview => View::Overview,
            Self::Stages => View::Stages,
            Self::Timeline => View::Timeline,
            Self::Queues => View::Queues,
            Self::Gpus => View::Gpus,
            Self::Threads => View::Threads,
            Self::Training => View::Training,
            Self::Events => View::Events,
            Self::Help => View::Help,
        }
    }
}

/// What `--window` says.
#[derive(Clone, Copy, Debug)]
enum WindowArg {
    /// So much of the newest recording.
    Newest(WindowLength),
    /// This stretch of it.
    Stretch(TimeRange),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let subject = args.subject()?;
    args.output.check()?;
    let options = args.options(&subject)?;
    let live = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.json {
        args.output.write(args.report(&subject)?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.once || args.format == Format::Svg || args.output.is_given() || !live {
        let text = match args.format {
            Format::Text => once(subject, &options)?,
            Format::Svg => frame_svg(&frame(subject, &options)?),
        };
        args.output.write(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    match dflash_tui::run(subject, &options) {
        Ok(End::Quit | End::Interrupt | End::Over) => Ok(ExitCode::SUCCESS),
        Ok(End::Signal(signal)) => Ok(ExitCode::from(128 + u8::try_from(signal).unwrap_or(0))),
        Err(error @ Error::Timeline(_)) => Err(error.into()),
        Err(error) => Err(WhileRunning(error.into()).into()),
    }
}

impl Args {
    /// The run; where none is, and none was named, this machine's GPUs.
    fn subject(&self) -> anyhow::Result<Subject> {
        match self.run.resolve() {
            Ok(mut runs) if runs.len() == 1 => Ok(Subject::Run(runs.remove(0))),
            Ok(runs) => Ok(Subject::Runs(runs)),
            Err(error) => match error.downcast_ref() {
                Some(none @ timeline::Error::NoRuns { .. }) => Ok(Subject::Gpus(none.to_string())),
                _ => Err(error),
            },
        }
    }

    /// The run's report, the same as `dflash report --format json` prints of this window.
    fn report(&self, subject: &Subject) -> anyhow::Result<String> {
        let Some(runs) = runs(subject) else {
            anyhow::bail!("there is no run to report on; name one, or leave --json away to see this machine's GPUs");
        };
        let mut selection = Selection::default();
        match self.window {
            Some(WindowArg::Stretch(stretch)) => selection.window = Some(stretch),
            Some(WindowArg::Newest(length)) => {
                selection.last = length.nanoseconds().map(|ns| Length(ns.unsigned_abs()));
            }
            None => {}
        }
        let (report, _) = Report::of_runs(runs, &selection)?;
        Ok(report.json()?)
    }

    fn options(&self, subject: &Subject) -> anyhow::Result<Options> {
        let mut options = Options::default();
        options.view = self.view.map(ViewName::view);
        options.mouse = self.mouse;
        options.baseline = self.baseline.as_deref().map(|named| baseline(named, subject)).transpose()?;
        match self.window {
            None => {}
            Some(WindowArg::Newest(length)) => options.window = Some(length),
            Some(WindowArg::Stretch(stretch)) => options.stretch = Some(stretch),
        }
        options.interval = Duration::from_secs_f64(self.interval);
        options.charset = self.charset();
        let columns = terminal_width().unwrap_or(options.size.0);
        options.size = self.size.map_or((columns, None), |(columns, lines)| (columns, Some(lines)));
        Ok(options)
    }

    /// What the terminal can show; a picture can show everything.
    fn charset(&self) -> Charset {
        let mut charset = match self.format {
            Format::Text => Charset::of_environment(|name| std::env::var(name).ok()),
            Format::Svg => Charset::default(),
        };
        charset.unicode &= !self.ascii;
        charset.light = match self.background {
            Background::Auto => charset.light,
            Background::Dark => false,
            Background::Light => true,
        };
        if self.no_color {
            charset.colors = Colors::None;
        }
        charset
    }
}

/// The runs that are shown, if any is.
fn runs(subject: &Subject) -> Option<&[RunDir]> {
    match subject {
        Subject::Run(run) => Some(std::slice::from_ref(run)),
        Subject::Runs(runs) => Some(runs),
        _ => None,
    }
}

/// A path, or the name of a run that lies beside the one that is shown.
fn baseline(named: &Path, subject: &Subject) -> anyhow::Result<RunDir> {
    let first = runs(subject).and_then(<[_]>::first);
    let beside = first.and_then(|run| run.path().parent()).map(|parent| parent.join(named));
    let path = beside.filter(|beside| !named.exists() && beside.is_dir());
    Ok(RunDir::open(path.as_deref().unwrap_or(named))?)
}

fn window(text: &str) -> Result<WindowArg, String> {
    let newest = match text {
        "10s" => WindowLength::Seconds10,
        "1m" => WindowLength::Minute,
        "10m" => WindowLength::Minutes10,
        "all" => WindowLength::Whole,
        stretch if stretch.contains("..") => {
            return stretch.parse().map(WindowArg::Stretch).map_err(|error: dflash_reports::Error| error.to_string());
        }
        _ => return Err("give 10s, 1m, 10m, all, or a stretch such as 30s..2m".to_owned()),
    };
    Ok(WindowArg::Newest(newest))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "give seconds from 0.05 to 3600".to_owned())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x').and_then(|(columns, lines)| Some((columns.parse().ok()?, lines.parse().ok()?)));
    let fits = |(columns, lines): &(u16, u16)| (60..=400).contains(columns) && (15..=400).contains(lines);
    parts.filter(fits).ok_or_else(|| "give COLUMNSxLINES from 60x15 to 400x400".to_owned())
}
