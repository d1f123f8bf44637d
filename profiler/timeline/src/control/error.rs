//! Why a run cannot be controlled.

use std::io;
use std::path::PathBuf;

/// Result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request was not done, with the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run directory cannot be read.
    #[error(transparent)]
    Run(#[from] crate::Error),
    /// There is no process any more.
    #[error("{run} is over ({state}): only a run that goes on can be controlled")]
    Over {
        /// The run.
        run: String,
        /// How it ended.
        state: &'static str,
    },
    /// The process is another machine's.
    #[error("the trainer runs on {host}: nothing can be controlled from here; log in there")]
    Elsewhere {
        /// That machine.
        host: String,
    },
    /// The run has no socket.
    #[error(
        "{run} takes no requests: it was started without control, or its socket could not be made (`dflash dump {run}` has a mark that says why)"
    )]
    NoSocket {
        /// The run.
        run: String,
    },
    /// The socket is not there, or nobody answers.
    #[error("{}: nobody answers: {source}; if the run goes on, its process is busy or another container's", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket is another user's.
    #[error("{} is not yours: only the user who started the run may control it", path.display())]
    NotYours {
        /// The socket.
        path: PathBuf,
    },
    /// The answer did not come, or came in parts.
    #[error("the run did not answer: {source}; what was asked may have been done all the same")]
    Lost {
        /// What happened.
        source: io::Error,
    },
    /// The answer makes no sense.
    #[error("the run answered what this dflash does not understand ({problem}); use the dflash that trains")]
    Garbled {
        /// What the parser said.
        problem: String,
    },
    /// The run said no.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// Whether it is the caller's to choose another run or machine, rather than a failure of this one.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Over { .. } | Self::Elsewhere { .. })
    }
}
