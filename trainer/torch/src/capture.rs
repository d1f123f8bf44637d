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

/// An operator that begins in a capture writes its end into the capture's memory, also when it ends long after it. So a
/// capture ends with none in flight: those that wait for something longer than this keep it from ending for now.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long none must be in flight. One that has asked for callbacks and not called them yet is not counted: that takes
/// it less than a microsecond, unless the system stops its thread there.
const GRACE: Duration = Duration::from_millis(100);

/// Calls to CUDA after a capture, and how far apart: Kineto's thread that lets CUPTI go takes some milliseconds to begin.
const LET_GO_CALLS: u32 = 20;
const LET_GO_EVERY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle {
        prepared: bool,
    },
    Running,
    /// It captures nothing new, but operators of it are in flight.
    Ending,
}

static STATE: Mutex<State> = Mutex::new(State::Idle { prepared: false });

/// Does the slow part of a begin ahead of time: setting CUPTI up takes a good part of a second the first time. Begin soon
/// after, since CUPTI costs a little from then on.
///
/// # Errors
/// A capture runs, or has operators in flight, or libtorch refused.
pub fn prepare_capture() -> Result<()> {
    let mut state = state()?;
    idle(&mut state)?;
    prepare()?;
    *state = State::Idle { prepared: true };
    Ok(())
}

/// Begins a capture. Returns what it will not see, in words.
///
/// # Errors
/// A capture runs, this one's or another profiler's of libtorch; operators of the last one are in flight; or libtorch
/// refused.
pub fn start_capture() -> Result<Vec<String>> {
    let mut state = state()?;
    let prepared = idle(&mut state)?;
    if !prepared {
        prepare()?;
    }
    *state = State::Idle { prepared: false };
    // SAFETY: takes a bool; the answer goes to `answer` alone.
    unsafe { answer("beginning a kernel capture", ffi::dflash_capture_start(has_gpu())) }?;
    *state = State::Running;
    Ok(unseen())
}

/// Ends the capture, and writes it to `file` as Chrome JSON. Takes up to seconds; the training goes on meanwhile.
///
/// # Errors
/// No capture runs, or the file exists or cannot be written; the capture has ended then, too. An operator that began in
/// it has not ended after 10 s: nothing more is captured then, and another call, or the next begin, ends it.
pub fn stop_capture(file: &Path) -> Result<CapturedTrace> {
    let mut state = state()?;
    if matches!(*state, State::Idle { .. }) {
        return Err(TorchError::NotCapturing);
    }
    let trace = end(&mut state, PATIENCE)?;
    let_go();
    trace.save(file)
}

/// Ends a capture that runs, or that could not end before, once none of its operators is in flight.
fn end(state: &mut State, patience: Duration) -> Result<RawOwner> {
    if *state == State::Running {
        // SAFETY: takes nothing; the answer goes to `answer` alone.
        unsafe { answer("ending a kernel capture", ffi::dflash_capture_quiet()) }?;
        *state = State::Ending;
    }
    let given_up = Instant::now() + patience;
    let mut none_since = Instant::now();
    while none_since.elapsed() < GRACE {
        // SAFETY: takes nothing and cannot fail.
        let count = unsafe { ffi::dflash_capture_in_flight() };
        if count != 0 {
            none_since = Instant::now();
            if none_since >= given_up {
                return Err(TorchError::InFlight { count });
            }
        }
        sleep(LOOK_EVERY);
    }
    let mut raw = null_mut();
    *state = State::Idle { prepared: false };
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

/// Makes sure that no capture runs. Whether the next one is prepared.
fn idle(state: &mut State) -> Result<bool> {
    if *state == State::Ending {
        // What it holds nobody waits for any more.
        drop(end(state, Duration::ZERO)?);
        let_go();
    }
    // SAFETY: takes nothing and cannot fail.
    let other = unsafe { ffi::dflash_capture_running() };
    match *state {
        State::Idle { prepared } if !other => Ok(prepared),
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
