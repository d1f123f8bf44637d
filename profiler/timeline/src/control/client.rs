//! Asks a run that goes on.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::connect::{connect, of_rank};
use super::error::{Error, Result};
use super::protocol::{Answer, Ask, Request};
use crate::process::hostname;
use crate::{RunDir, State};

/// How long a run may take to accept, and between two lines of an answer. It sends progress more often than that.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer that are read: the stacks of a thousand threads are some megabytes.
const LONGEST_ANSWER: u64 = 64 << 20;

/// A connection to a run's control socket.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    by: String,
}

impl Client {
    /// Connects to the process `rank` of a run. `by` says in the timeline who asked, e.g. `ctl`.
    ///
    /// # Errors
    /// The run is over or on another machine, has no socket or another user's, or nobody answers.
    pub fn connect(run: &RunDir, rank: u32, by: &str) -> Result<Self> {
        let (manifest, state) = (run.manifest()?, run.state()?);
        let name = || run.path().display().to_string();
        if state != State::Running {
            return Err(Error::Over { run: name(), state: state.as_str() });
        }
        if manifest.host != hostname() {
            return Err(Error::Elsewhere { host: manifest.host });
        }
        let socket = manifest.control.ok_or_else(|| Error::NoSocket { run: name() })?;
        Self::open(&of_rank(&socket, rank), by)
    }

    /// Connects to a socket by its path.
    ///
    /// # Errors
    /// It is not there, not a socket of the calling user, or nobody answers.
    pub fn open(path: &Path, by: &str) -> Result<Self> {
        let unreachable = |source| Error::Unreachable { path: path.to_owned(), source };
        let socket = fs::symlink_metadata(path).map_err(unreachable)?;
        // Whoever planted something at this path must not learn what is asked, nor answer it.
        let own = fs::metadata("/proc/self").map_err(unreachable)?.uid();
        if !socket.file_type().is_socket() || socket.uid() != own {
            return Err(Error::NotYours { path: path.to_owned() });
        }
        let stream = connect(path, PATIENCE).map_err(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(unreachable)?;
        Ok(Self { stream: BufReader::new(stream), by: by.to_owned() })
    }

    /// Waits no longer than this for each line of an answer.
    ///
    /// # Errors
    /// If the system refuses, as it does for no time at all.
    pub fn patient_for(self, patience: Duration) -> Result<Self> {
        let lost = |source| Error::Lost { source };
        self.stream.get_ref().set_read_timeout(Some(patience)).map_err(lost)?;
        self.stream.get_ref().set_write_timeout(Some(patience)).map_err(lost)?;
        Ok(self)
    }

    /// Asks, and waits for the answer. `progress` is told what the run waits for meanwhile.
    ///
    /// # Errors
    /// The run refuses, fails or does not answer.
    pub fn ask(&mut self, ask: Ask, progress: &mut dyn FnMut(&str)) -> Result<Answer> {
        let lost = |source| Error::Lost { source };
        let request = Request { by: self.by.clone(), ask };
        // A run that turned the connection down has said why, and closed it: that is still to be read.
        let sent = self.stream.get_mut().write_all(request.line().as_bytes());
        loop {
            let line = match (self.line(), &sent) {
                (Ok(line), _) => line,
                (Err(_), Err(source)) => return Err(lost(io::Error::new(source.kind(), source.to_string()))),
                (Err(source), Ok(())) => return Err(lost(source)),
            };
            match serde_json::from_str(&line).map_err(|e| Error::Garbled { problem: e.to_string() })? {
                Answer::Progress(text) => progress(&text),
                Answer::Error(text) => return Err(Error::Refused(text)),
                answer => return Ok(answer),
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.stream).take(LONGEST_ANSWER).read_line(&mut line)?;
        if line.ends_with('\n') { Ok(line) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}
