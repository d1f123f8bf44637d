//! Where the numbers come from: a run's directory, looked at again and again; without a run, this machine's GPUs.

mod alone;
mod governor;
mod keep;
mod metrics;
mod nvml;
mod run;

use std::time::{SystemTime, UNIX_EPOCH};

pub use alone::AloneSource;
pub use governor::Governor;
pub use nvml::Library;
pub use run::RunSource;

use dflash_reports::timeline::RunDir;

use crate::state::{Look, Model};

/// What is looked at.
pub enum Source {
    /// A run.
    Run(Box<RunSource>),
    /// This machine's GPUs.
    Alone(Box<AloneSource>),
}

impl Source {
    /// Whether more may come.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self {
            Self::Run(source) => source.is_live(),
            Self::Alone(_) => true,
        }
    }

    /// Looks again; whether the numbers may have changed.
    pub fn poll(&mut self) -> bool {
        match self {
            Self::Run(source) => source.poll(),
            Self::Alone(source) => {
                source.poll();
                true
            }
        }
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        match self {
            Self::Run(source) => source.model(look),
            Self::Alone(source) => source.model(look),
        }
    }

    /// The run, if one is looked at.
    #[must_use]
    pub fn run(&self) -> Option<&RunDir> {
        match self {
            Self::Run(source) => Some(source.run()),
            Self::Alone(_) => None,
        }
    }
}

/// The time, nanoseconds since 1970.
pub fn now_unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
