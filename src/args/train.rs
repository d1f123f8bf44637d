//! What `dflash train` takes.

use std::path::PathBuf;
use std::time::Duration;

/// Options and arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, e.g. configs/demo.toml [default with --resume RUN: the run's own]
    #[arg(required_unless_present = "resume")]
    pub config: Option<PathBuf>,
    /// Go on with a run from its newest checkpoint, in the same directory; `auto`: with the newest unfinished run of the
    /// configuration's name, if there is one
    #[arg(long, value_name = "RUN|auto")]
    pub resume: Option<PathBuf>,
    /// Seed of everything random, instead of the configuration's
    #[arg(long)]
    pub seed: Option<u64>,
    /// Optimizer steps, instead of the configuration's
    #[arg(long)]
    pub steps: Option<usize>,
    /// Directory that holds the runs, instead of the configuration's
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
    /// Name of the run, instead of the configuration's
    #[arg(long)]
    pub name: Option<String>,
    /// End in good time, with a checkpoint and exit code 0, once so much time has passed: 90m, 12h, 30s, or [D-]HH:MM:SS
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    pub time_limit: Option<Duration>,
    /// Another value for a key of the configuration, such as train.learning_rate=1e-4 (may be given several times). With
    /// --resume: the learning rate, what shapes it over the steps, clipping and weight decay can be changed, from here on
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Form of the log lines on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Show the training on one screen while it goes on, as `dflash top` does: q leaves the screen, Ctrl-C also ends the
    /// training
    #[arg(long)]
    pub top: bool,
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// A number with s, m or h, or a queueing system's [D-]HH:MM:SS.
fn time_limit(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: write 90m, 12h, 30s, or [D-]HH:MM:SS");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let sum = |parts: &[(u64, u64)]| {
        parts.iter().try_fold(0u64, |sum, (count, unit)| sum.checked_add(count.checked_mul(*unit)?)).ok_or_else(wrong)
    };
    let seconds = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((count, "s")) => number(count)?,
        Some((count, "m")) => sum(&[(number(count)?, 60)])?,
        Some((count, "h")) => sum(&[(number(count)?, 3_600)])?,
        _ => {
            let (days, clock) = text.split_once('-').unwrap_or(("0", text));
            let [hours, minutes, seconds] = clock.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
            let counts = [number(days)?, number(hours)?, number(minutes)?, number(seconds)?];
            sum(&counts.into_iter().zip([86_400, 3_600, 60, 1]).collect::<Vec<_>>())?
        }
    };
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_and_queueing_systems_write_them() {
        let seconds = |text| time_limit(text).map(|limit| limit.as_secs());
        assert_eq!(["30s", "90m", "12h"].map(seconds), [Ok(30), Ok(5_400), Ok(43_200)]);
        assert_eq!(["01:02:03", "2-00:00:10"].map(seconds), [Ok(3_723), Ok(172_810)]);
        for wrong in ["", "h", "90", "1:2", "1.5h", "-1s", "é", "18446744073709551615h", "9999999999999999-00:00:00"] {
            assert!(time_limit(wrong).unwrap_err().contains("is no time"), "{wrong}");
        }
    }
}
