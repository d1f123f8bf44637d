//! `kernels-<first>-<n>.meta.json`: what a kernel capture covers, so that a reader can join its kernels to iterations.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Version of the file's layout.
pub const KERNELS_SCHEMA: u32 = 1;

/// The window of a kernel capture. Where its iterations begin and end stands in the timeline, lane by lane, on the same
/// clock; the trace holds a little more at both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KernelWindow {
    /// Version of this layout.
    pub schema: u32,
    /// The trace's file name, beside this file.
    pub trace: String,
    /// The process.
    pub rank: u32,
    /// Which start of the run, from 1.
    pub attempt: u32,
    /// The lane whose iterations were counted.
    pub lane: String,
    /// Number of the first iteration that lies in the window whole.
    pub first: u64,
    /// Number of the last one; `None`: none had ended.
    pub last: Option<u64>,
    /// Iterations that were asked for.
    pub asked: u64,
    /// When the tracer had begun, nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: i64,
    /// When it was told to stop, nanoseconds of CLOCK_MONOTONIC.
    pub end_ns: i64,
    /// `begin_ns` on CLOCK_REALTIME: nanoseconds since 1970.
    pub begin_unix_ns: i64,
    /// `end_ns` on CLOCK_REALTIME.
    pub end_unix_ns: i64,
    /// What the tracer cannot see, in words.
    pub lacks: Vec<String>,
}

impl Default for KernelWindow {
    fn default() -> Self {
        Self {
            schema: KERNELS_SCHEMA,
            trace: String::new(),
            rank: 0,
            attempt: 1,
            lane: String::new(),
            first: 0,
            last: None,
            asked: 0,
            begin_ns: 0,
            end_ns: 0,
            begin_unix_ns: 0,
            end_unix_ns: 0,
            lacks: Vec::new(),
        }
    }
}

impl KernelWindow {
    /// Where the window of a trace stands.
    #[must_use]
    pub fn path_of(trace: &Path) -> PathBuf {
        trace.with_extension("meta.json")
    }

    /// Reads the window of a trace.
    ///
    /// # Errors
    /// The file is missing, damaged or newer than this crate.
    pub fn read(trace: &Path) -> Result<Self> {
        let path = Self::path_of(trace);
        let text = fs::read(&path).map_err(Error::io(&path, "read it"))?;
        let window: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::io(&path, "understand it")(io::Error::new(io::ErrorKind::InvalidData, e)))?;
        if window.schema > KERNELS_SCHEMA {
            return Err(Error::TooNew { path, version: window.schema, known: KERNELS_SCHEMA });
        }
        Ok(window)
    }

    /// Writes the window of a trace, so that nobody sees a part of it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, trace: &Path) -> Result<()> {
        let path = Self::path_of(trace);
        let beside = path.with_extension("json.part");
        let write = || {
            fs::write(&beside, serde_json::to_string_pretty(self)? + "\n")?;
            fs::rename(&beside, &path)
        };
        write().map_err(Error::io(&path, "write it"))
    }
}
