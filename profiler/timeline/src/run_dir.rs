//! The run directory: where everything about a run lies.

mod kept_file;
mod manifest_file;
mod rank_trouble;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use self::rank_trouble::RankTrouble;
use crate::error::{Error, Result};
use crate::manifest::{Manifest, State};
use crate::{listing, process, utc};

/// A run's directory, with its run.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes `<parent>/<YYYYmmdd-HHMMSS>-<name>/` (UTC), with `-2`, `-3`, … behind it if it exists, and writes run.json.
    ///
    /// What the manifest leaves empty (name, start, host, pid) is filled in.
    pub fn create(parent: &Path, name: &str, mut manifest: Manifest) -> Result<Self> {
        fs::create_dir_all(parent).map_err(Error::io(parent, "create it"))?;
        fill_in(&mut manifest, name);
        let stem = format!("{}-{}", utc::stamp(manifest.started_unix_ns), file_name(name));
        let path = create_unused(parent, &stem)?;
        let timeline = path.join("timeline");
        fs::create_dir(&timeline).map_err(Error::io(&timeline, "create it"))?;
        let run = Self { path };
        run.write_manifest(&manifest)?;
        Ok(run)
    }

    /// Begins another attempt of this run: its run.json is the new attempt's from now on. What the manifest leaves empty
    /// is filled in as by [`create`](Self::create).
    pub fn begin_attempt(&self, mut manifest: Manifest) -> Result<()> {
        let timeline = self.path.join("timeline");
        fs::create_dir_all(&timeline).map_err(Error::io(&timeline, "create it"))?;
        fill_in(&mut manifest, &self.name());
        self.write_manifest(&manifest)
    }

    /// Opens a run; an error says what is wrong with a directory that is none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match fs::metadata(path.join("run.json")) {
            Ok(_) => Ok(Self { path: path.to_owned() }),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(Error::NotARun { path: path.to_owned() })
            }
            Err(e) => Err(Error::io(&path.join("run.json"), "read it")(e)),
        }
    }

    /// The runs in a directory, newest first; what is damaged is left out.
    pub fn list(parent: &Path) -> Result<Vec<Self>> {
        Ok(Self::list_all(parent)?.0)
    }

    /// The runs in a directory, newest first, and what was left out because it is damaged.
    pub fn list_all(parent: &Path) -> Result<(Vec<Self>, Vec<Error>)> {
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(parent).map_err(Error::io(parent, "list it"))? {
            let path = entry.map_err(Error::io(parent, "list it"))?.path();
            if !path.is_dir() {
                continue;
            }
            match Self::open(&path).and_then(|run| Ok((run.manifest()?.started_unix_ns, run))) {
                Ok(found) => runs.push(found),
                Err(error) => damaged.push(error),
            }
        }
        runs.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| y.path.cmp(&x.path)));
        Ok((runs.into_iter().map(|(_, run)| run).collect(), damaged))
    }

    /// The run that a reader means who names none: the newest that is running, else the newest.
    pub fn newest(parent: &Path) -> Result<Self> {
        let runs = match Self::list(parent) {
            Ok(runs) => runs,
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let live = runs.iter().find(|run| matches!(run.state(), Ok(State::Running)));
        live.or(runs.first()).cloned().ok_or_else(|| Error::NoRuns { parent: parent.to_owned() })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory's own name, `<start>-<name>`.
    #[must_use]
    pub fn name(&self) -> String {
        let full = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        full.file_name().unwrap_or(full.as_os_str()).to_string_lossy().into_owned()
    }

    /// iterations.csv.
    #[must_use]
    pub fn iterations_csv(&self) -> PathBuf {
        self.path.join("iterations.csv")
    }

    /// metrics.csv.
    #[must_use]
    pub fn metrics_csv(&self) -> PathBuf {
        self.path.join("metrics.csv")
    }

    /// Where the timing stream's segments lie.
    #[must_use]
    pub fn timeline_dir(&self) -> PathBuf {
        self.path.join("timeline")
    }

    /// When something was last written into each rank's timeline, as the file system says.
    ///
    /// # Errors
    /// If the timeline's directory cannot be listed.
    pub fn written_at(&self) -> Result<BTreeMap<u32, SystemTime>> {
        listing::written_at(&self.timeline_dir())
    }

    /// Where checkpoints lie.
    #[must_use]
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Where the run stands: as its manifest says, unless that says running and the process is gone.
    ///
    /// Only this machine's processes can be asked; a run on another host is believed.
    pub fn state(&self) -> Result<State> {
        let manifest = self.manifest()?;
        let asked = manifest.state == State::Running && manifest.is_here();
        let gone = match process::start_ticks(manifest.pid) {
            None => true,
            Some(ticks) => manifest.pid_start.is_some_and(|start| start != ticks),
        };
        Ok(if asked && gone { State::Died } else { manifest.state })
    }
}

/// Fills in what the caller left empty.
fn fill_in(manifest: &mut Manifest, name: &str) {
    if manifest.name.is_empty() {
        name.clone_into(&mut manifest.name);
    }
    if manifest.started_unix_ns == 0 {
        manifest.started_unix_ns = utc::now_unix_ns();
    }
    if manifest.host.is_empty() {
        manifest.host = process::hostname();
    }
    if manifest.pid == 0 {
        manifest.pid = std::process::id();
    }
    if manifest.pid == std::process::id() {
        manifest.pid_start = process::start_ticks(manifest.pid);
    }
}

/// Creates `<parent>/<stem>`, or the first of `<stem>-2`, `<stem>-3`, … that is not there.
fn create_unused(parent: &Path, stem: &str) -> Result<PathBuf> {
    let mut path = parent.join(stem);
    for number in 2_u32.. {
        match fs::create_dir(&path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => path = parent.join(format!("{stem}-{number}")),
            done => return done.map(|()| path.clone()).map_err(Error::io(&path, "create it")),
        }
    }
    Ok(path)
}

/// A run's name as part of a file name: what a shell or a file system could mistake becomes `-`.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let text: String = name.chars().map(plain).take(60).collect();
    if text.is_empty() { "run".to_owned() } else { text }
}
