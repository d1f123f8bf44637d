//! Where a report goes: stdout, or a file that is never overwritten unasked and never seen half-written.

use crate::exit::WhileRunning;
use anyhow::{Context, bail};
use dflash_reports::text::Look;
use std::fs;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// `-o FILE` and `--force`.
#[derive(clap::Args, Clone, Debug)]
pub struct OutputArg {
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that exists
    #[arg(long)]
    force: bool,
}

impl OutputArg {
    /// Refuses early, before the long work, what could not be written later.
    pub fn check(&self) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), |path| check(path, self.force))
    }

    /// Writes the report.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        match &self.output {
            Some(path) => write_file(path, bytes, self.force),
            None => print(bytes),
        }
    }

    /// Writes a report that is made piece by piece. A file that was not finished is not there.
    pub fn write_with<T>(&self, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut written = None;
        match &self.output {
            Some(path) => write_file_with(path, self.force, |file| {
                written = Some(write(file)?);
                Ok(())
            })?,
            None => {
                let mut stdout = BufWriter::new(std::io::stdout().lock());
                written = Some(write(&mut stdout)?);
                stdout.flush()?;
            }
        }
        written.context("nothing was written")
    }

    /// Whether it goes to a terminal, which bytes that are no text would confuse.
    pub fn is_terminal(&self) -> bool {
        self.output.is_none() && std::io::stdout().is_terminal()
    }

    /// The path that was given, if it is a directory or ends like one.
    pub fn directory(&self) -> Option<&Path> {
        let path = self.output.as_deref()?;
        let like_one = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        (path.is_dir() || like_one).then_some(path)
    }

    /// Whether a file was named.
    pub fn is_given(&self) -> bool {
        self.output.is_some()
    }

    /// Whether `--force` was given.
    pub fn force(&self) -> bool {
        self.force
    }

    /// Colour only on a terminal, and not if `NO_COLOR` is set.
    pub fn look(&self) -> Look {
        Look { color: self.output.is_none() && std::io::stdout().is_terminal() && !no_color() }
    }
}

/// Whether the user asks for no colour: `NO_COLOR` is set and not empty.
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// A line on stderr. That nobody reads it any more (`2>&1 | head`) must not end a training.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes to stdout. That it is full or gone is no fault of what was asked for.
pub fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => error.into(),
        _ => WhileRunning(anyhow::Error::from(error).context("cannot write to stdout")).into(),
    })
}

/// Refuses a file that exists (unless `force`), a directory, and a file in a directory that does not exist.
pub fn check(path: &Path, force: bool) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a directory; name a file in it", path.display());
    }
    if path.exists() && !force {
        bail!("{} exists; name another file, or overwrite it with --force", path.display());
    }
    let parent = parent(path);
    if parent.exists() && !parent.is_dir() {
        bail!("{}: {} is no directory; name a file elsewhere", path.display(), parent.display());
    }
    if !parent.is_dir() {
        bail!("{}: the directory {} does not exist; create it first", path.display(), parent.display());
    }
    Ok(())
}

/// Writes a file beside its place and renames it, so that nobody sees a part of it.
pub fn write_file(path: &Path, bytes: &[u8], force: bool) -> anyhow::Result<()> {
    write_file_with(path, force, |file| Ok(file.write_all(bytes)?))
}

/// The same with a file that is too large to be held in memory. What `contents` says failed keeps its own words.
pub fn write_file_with(
    path: &Path,
    force: bool,
    contents: impl FnOnce(&mut BufWriter<fs::File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    check(path, force)?;
    let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let beside = parent(path).join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let write = || {
        let mut file = BufWriter::new(fs::File::create(&beside)?);
        contents(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        Ok(fs::rename(&beside, path)?)
    };
    write().map_err(|error: anyhow::Error| {
        // What is left of the attempt is of no use to anyone; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&beside);
        if is_of_writing(&error) {
            WhileRunning(error.context(format!("cannot write {}", path.display()))).into()
        } else {
            error
        }
    })
}

/// A full disk is a failure while running; what is wrong with what was read is bad input.
fn is_of_writing(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<dflash_reports::Error>() {
        Some(dflash_reports::Error::Write(_)) => true,
        Some(dflash_reports::Error::Csv(error)) => error.is_io_error(),
        _ => error.is::<std::io::Error>(),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
