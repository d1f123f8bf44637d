//! What a capture brought, and its way to a file.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::ffi::{self, RawTrace, answer};
use crate::{Result, TorchError};

/// A capture that has ended and is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedTrace {
    /// Chrome JSON.
    pub file: PathBuf,
    /// Its begin, in nanoseconds of the realtime clock.
    pub begin_ns: u64,
    /// What ran on GPUs: kernels, copies, fills. 0 with GPUs at work: another tool holds CUPTI.
    pub kernels: u64,
    /// Threads whose operators are in it. Any other thread ran none that began meanwhile.
    pub threads: Vec<CapturedThread>,
}

/// A thread of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedThread {
    /// The kernel's id of it.
    pub tid: i64,
    /// Its name, at most 15 bytes; `None`: it has ended meanwhile.
    pub name: Option<String>,
    /// Operators that it ran.
    pub operators: u64,
}

/// libtorch's trace, freed when dropped.
#[derive(Debug)]
pub(crate) struct RawOwner(*mut RawTrace);

impl RawOwner {
    /// # Safety
    /// `raw` is the shim's, and nobody else frees it.
    pub(crate) unsafe fn new(raw: *mut RawTrace) -> Self {
        Self(raw)
    }

    /// Writes it beside `file`, looks whether it is whole, and renames it.
    pub(crate) fn save(self, file: &Path) -> Result<CapturedTrace> {
        let failed = |why: String| TorchError::Trace { file: file.to_owned(), why };
        if file.exists() {
            return Err(failed("it exists already; name another".to_owned()));
        }
        // Kineto reports a file that it cannot open on stderr alone, and compresses by the name's end.
        let part = beside(file);
        File::create(&part).map_err(|error| failed(error.to_string()))?;
        let written = self.write(&part).and_then(|()| whole(&part).map_err(&failed));
        let renamed = written.and_then(|()| fs::rename(&part, file).map_err(|error| failed(error.to_string())));
        if renamed.is_err() {
            // It is of no use, and the first error is the one to tell.
            let _ = fs::remove_file(&part);
        }
        renamed.map(|()| self.described(file))
    }

    fn write(&self, path: &Path) -> Result<()> {
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|_| TorchError::Trace { file: path.to_owned(), why: "has a NUL in it".to_owned() })?;
        // SAFETY: the trace is ours and alive, the name NUL-terminated; the answer goes to `answer` alone.
        unsafe { answer("writing a kernel capture", ffi::dflash_trace_save(self.0, name.as_ptr())) }
    }

    fn described(&self, file: &Path) -> CapturedTrace {
        // SAFETY: the trace is ours and alive, and no index is out of bounds.
        let (begin_ns, kernels, threads) = unsafe {
            let threads = 0..ffi::dflash_trace_threads(self.0);
            let threads: Vec<_> = threads.map(|index| ffi::dflash_trace_thread(self.0, index)).collect();
            (ffi::dflash_trace_begin(self.0), ffi::dflash_trace_kernels(self.0), threads)
        };
        let named =
            |raw: ffi::RawThread| CapturedThread { tid: raw.tid, name: name_of(raw.tid), operators: raw.operators };
        CapturedTrace { file: file.to_owned(), begin_ns, kernels, threads: threads.into_iter().map(named).collect() }
    }
}

impl Drop for RawOwner {
    fn drop(&mut self) {
        // SAFETY: ours, and freed here alone.
        unsafe { ffi::dflash_trace_free(self.0) };
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".part");
    file.with_file_name(name)
}

/// A full disk, too, is reported on stderr alone: look for the end of the JSON.
fn whole(path: &Path) -> std::result::Result<(), String> {
    let end = last_bytes(path).map_err(|error| error.to_string())?;
    let closed = end.trim_ascii_end().ends_with(b"}");
    if closed { Ok(()) } else { Err("its end is missing; is the disk full?".to_owned()) }
}

fn last_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(16)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end)
}

fn name_of(tid: i64) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(name.trim_end_matches('\n').to_owned())
}
