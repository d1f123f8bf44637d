//! Kernel capture: kernels of all GPUs, and operators of all threads of the process, for a while.
//!
//! libtorch's own profiler does the work. Its state is global here, so begin and end may come from any threads; threads
//! that exist already, autograd's among them, are in the capture from their next operator on.

use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::ffi::{self, answer};
use crate::trace::{CapturedTrace, RawOwner};
use crate::{Result, Stream, TorchError, gpu_count};
use tch::Device;

/// Between "record no new operators" and the end: what runs meanwhile still writes its end into the profiler's memory.
const GRACE: Duration = Duration::from_millis(50);
/// Between one capture's end and the next one's begin: an operator must not begin in one and end in the other, since the
/// profiler would write to memory that it has freed. Operators that wait for the device may take long.
const SETTLE: Duration = Duration::from_secs(1);

/// Calls to CUDA after a capture, and how far apart: Kineto's thread that lets CUPTI go takes some milliseconds to begin.
const LET_GO_CALLS: u32 = 20;
const LET_GO_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug)]
enum State {
    Idle { prepared: bool, ended: Option<Instant> },
    Running,
}

static STATE: Mutex<State> = Mutex::new(State::Idle { prepared: false, ended: None });

/// Does the slow part of a begin ahead of time: setting CUPTI up takes a good part of a second the first time. Begin soon
/// after, since CUPTI costs a little from then on.
///
/// # Errors
/// A capture runs, or libtorch refused.
pub fn prepare_capture() -> Result<()> {
    let mut state = state()?;
    let ended = idle(&state)?;
    prepare()?;
    *state = State::Idle { prepared: true, ended };
    Ok(())
}

/// Begins a capture. Returns what it will not see, in words. Right after another capture it waits up to a second.
///
/// # Errors
/// A capture runs, this one's or another profiler's of libtorch; or libtorch refused.
pub fn start_capture() -> Result<Vec<String>> {
    let mut state = state()?;
    let ended = idle(&state)?;
    if let Some(ended) = ended {
        sleep(SETTLE.saturating_sub(ended.elapsed()));
    }
    if !matches!(*state, State::Idle { prepared: true, .. }) {
        prepare()?;
    }
    *state = State::Idle { prepared: false, ended };
    // SAFETY: takes a bool; the answer goes to `answer` alone.
    unsafe { answer("beginning a kernel capture", ffi::dflash_capture_start(has_gpu())) }?;
    *state = State::Running;
    Ok(unseen())
}

/// Ends the capture, and writes it to `file` as Chrome JSON. Takes up to seconds; the training goes on meanwhile.
///
/// # Errors
/// No capture runs, or the file exists or cannot be written; the capture has ended then, too.
pub fn stop_capture(file: &Path) -> Result<CapturedTrace> {
    let mut state = state()?;
    if !matches!(*state, State::Running) {
        return Err(TorchError::NotCapturing);
    }
    let trace = end();
    let_go();
    *state = State::Idle { prepared: false, ended: Some(Instant::now()) };
    trace?.save(file)
}

fn end() -> Result<RawOwner> {
    let mut raw = null_mut();
    // SAFETY: takes nothing; the answer goes to `answer` alone.
    unsafe { answer("ending a kernel capture", ffi::dflash_capture_quiet()) }?;
    sleep(GRACE);
    // SAFETY: `raw` is valid to write to; the answer goes to `answer` alone.
    unsafe { answer("ending a kernel capture", ffi::dflash_capture_stop(&raw mut raw)) }?;
    // SAFETY: the shim just made it, and gave it away.
    Ok(unsafe { RawOwner::new(raw) })
}

/// CUPTI is let go (see `load_cuda`) in the next call to CUDA that any thread makes. If none came until the process
/// ended, it would hang there for ever: so make some.
fn let_go() {
    let devices = i16::try_from(gpu_count()).unwrap_or(0);
    for _ in 0..LET_GO_CALLS {
        for device in 0..devices {
            // What the call says does not matter.
            let _ = Stream::current(Device::Cuda(device.unsigned_abs().into())).and_then(|stream| stream.query());
        }
        sleep(LET_GO_EVERY);
    }
}

fn prepare() -> Result<()> {
    // Kineto asks for GPUs once, the first time: CUDA's half must be there by then, which has_gpu sees to.
    // SAFETY: takes a bool; the answer goes to `answer` alone.
    unsafe { answer("preparing a kernel capture", ffi::dflash_capture_prepare(has_gpu())) }
}

fn has_gpu() -> bool {
    gpu_count() > 0
}

/// When the last capture ended, if none runs.
fn idle(state: &State) -> Result<Option<Instant>> {
    // SAFETY: takes nothing and cannot fail.
    let other = unsafe { ffi::dflash_capture_running() };
    match state {
        State::Idle { ended, .. } if !other => Ok(*ended),
        _ => Err(TorchError::Capturing),
    }
}

/// The state; an error rather than a wait while another thread begins or ends a capture.
fn state() -> Result<MutexGuard<'static, State>> {
    match STATE.try_lock() {
        Ok(state) => Ok(state),
        Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
        Err(TryLockError::WouldBlock) => Err(TorchError::Capturing),
    }
}

fn unseen() -> Vec<String> {
    if !has_gpu() {
        return vec!["no kernels: libtorch sees no GPU; the operators of all threads are captured".to_owned()];
    }
    let injected = std::env::var_os("CUDA_INJECTION64_PATH");
    let tool = injected.map(|tool| format!("perhaps no kernels: {} may hold CUPTI", Path::new(&tool).display()));
    tool.into_iter().collect()
}
