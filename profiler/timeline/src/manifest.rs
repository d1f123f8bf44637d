//! `run.json`: what a run is, and how it ended.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::process;

/// Version of run.json that this crate writes.
pub const MANIFEST_SCHEMA: u32 = 1;

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on.
    #[default]
    Running,
    /// It came to its end.
    Finished,
    /// It ended with an error.
    Failed,
    /// A user or a signal stopped it.
    Stopped,
    /// Its manifest says running, but its process is gone. Found by readers, never written.
    Died,
}

impl State {
    /// The word for it, as in run.json.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Died => "died",
        }
    }
}

/// A GPU that the process sees. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GpuDetails {
    /// What the program calls it, e.g. `cuda:0`.
    pub device: String,
    /// Its maker's name for it.
    pub name: String,
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Its memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The driver's version.
    pub driver: Option<String>,
}

/// The contents of run.json. Fields that this version does not know are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Manifest {
    /// Version of this file's layout.
    pub schema: u32,
    /// The run's name, without its date.
    pub name: String,
    /// Which start of the run this is, from 1.
    pub attempt: u32,
    /// Where it stands.
    pub state: State,
    /// When this attempt started, nanoseconds since 1970.
    pub started_unix_ns: i64,
    /// When it ended; `None` while it runs.
    pub ended_unix_ns: Option<i64>,
    /// Name of the machine.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// When that process started, in the kernel's ticks since boot: tells it from a later process with its id.
    pub pid_start: Option<u64>,
    /// The command line, one argument each.
    pub command: Vec<String>,
    /// Version of dflash.
    pub version: String,
    /// Commit that it was built from.
    pub commit: Option<String>,
    /// Names of the GPUs; empty on a CPU run.
    pub gpus: Vec<String>,
    /// The same GPUs, one by one.
    pub gpu_details: Vec<GpuDetails>,
    /// The config as resolved.
    pub config: serde_json::Value,
    /// The unix socket over which the attempt that runs can be controlled on its host; rank 0's.
    pub control: Option<PathBuf>,
    /// Why its recording stopped before the attempt did, e.g. because the disk was full, in the words of rank 0's process;
    /// `None`: it did not, as far as that could be noted. With the other ranks' words:
    /// [`RunDir::trouble_of_ranks`](crate::RunDir::trouble_of_ranks).
    pub trouble: Option<String>,
    /// How it ended, in words.
    pub outcome: Option<String>,
    /// Results by name, e.g. `tau`.
    pub results: BTreeMap<String, serde_json::Value>,
}

impl Manifest {
    /// Whether it is a run of this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.host == process::hostname()
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            schema: MANIFEST_SCHEMA,
            name: String::new(),
            attempt: 1,
            state: State::Running,
            started_unix_ns: 0,
            ended_unix_ns: None,
            host: String::new(),
            pid: 0,
            pid_start: None,
            command: Vec::new(),
            version: String::new(),
            commit: None,
            gpus: Vec::new(),
            gpu_details: Vec::new(),
            config: serde_json::Value::Null,
            control: None,
            trouble: None,
            outcome: None,
            results: BTreeMap::new(),
        }
    }
}
