//! The signal handler: no lock, no allocation, no memory access that could fault.

use std::sync::atomic::{AtomicU32, Ordering};

use super::record::{Label, Sample};
use super::registers::Registers;
use super::state::{self, State};
use crate::{monotonic_ns, thread_cpu_ns};

/// Fills in what the calling thread works on. Gets the tag that the thread gave itself (0: none) and the hint that the
/// sampler was given for it.
///
/// It runs in a signal handler: it may load and store atomics, and nothing else - no lock, no allocation, no panic.
pub type Labeller = fn(tag: u32, hint: u64, label: &mut Label);

thread_local! {
    // Needs no initialiser and no destructor, so that a handler may read it on a thread that never wrote it.
    static TAG: AtomicU32 = const { AtomicU32::new(0) };
}

/// Tags the calling thread for the [`Labeller`]. Returns the tag before.
pub fn set_thread_tag(tag: u32) -> u32 {
    TAG.try_with(|own| own.swap(tag, Ordering::Relaxed)).unwrap_or(0)
}

/// What the kernel calls.
pub(super) extern "C" fn on_signal(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the address of this thread's errno, valid as long as the thread runs.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    // SAFETY: a handler installed with SA_SIGINFO gets both from the kernel; they are valid until it returns.
    let (info, context) = unsafe { (info.as_ref(), context.cast::<libc::ucontext_t>().as_ref()) };
    if let (Some(state), Some(info), Some(context)) = (state::get(), info, context) {
        handle(state, info, context);
    }
    *errno = before;
}

fn handle(state: &State, info: &libc::siginfo_t, context: &libc::ucontext_t) {
    match info.si_code {
        libc::SI_TIMER if state.sampling.load(Ordering::Acquire) => note(state, info, context, 0),
        libc::SI_QUEUE if sent_by_us(info) => {
            // A thread that blocked the signal may take it when somebody else asks: that answers nobody.
            let request = info.si_errno.cast_unsigned();
            if request != 0 && request == state.request.load(Ordering::Acquire) {
                note(state, info, context, request);
            }
        }
        // Somebody else's signal, or one that comes late.
        _ => {}
    }
}

/// Whether this process sent the signal.
fn sent_by_us(info: &libc::siginfo_t) -> bool {
    // SAFETY: a signal with SI_QUEUE carries its sender's process; getpid may be called in a handler.
    unsafe { info.si_pid() == libc::getpid() }
}

/// Takes the thread's stack.
fn note(state: &State, info: &libc::siginfo_t, context: &libc::ucontext_t, request: u32) {
    let time_ns = monotonic_ns();
    let tid = crate::thread_id();
    // SAFETY: both kinds of signal carry a value: the hint, as `ThreadTimer` and `Asking` put it there.
    let hint = unsafe { info.si_value() }.sival_ptr as u64;
    let walked = state.with_walker(tid, |walker, unwinder| {
        let fill = |sample: &mut Sample| {
            (sample.time_ns, sample.tid, sample.request) = (time_ns, tid, request);
            sample.cpu_ns = thread_cpu_ns();
            sample.label = Label::NONE;
            (state.label)(TAG.try_with(|tag| tag.load(Ordering::Relaxed)).unwrap_or(0), hint, &mut sample.label);
            walker.walk(unwinder, Registers::of(context), sample);
            sample.cost_ns = u32::try_from(thread_cpu_ns().saturating_sub(sample.cpu_ns)).unwrap_or(0);
        };
        let ring = if request == 0 { &state.samples } else { &state.answers };
        if !ring.push(fill) && request == 0 {
            state.full.fetch_add(1, Ordering::Relaxed);
        }
    });
    if !walked && request == 0 {
        state.busy.fetch_add(1, Ordering::Relaxed);
    }
}
