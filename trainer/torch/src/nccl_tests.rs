//! Waiting for peers, with a stand-in for the library.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::dangling_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::*;
use crate::nccl_library::Settings;
use crate::runtime::Handle;

/// How often a group in the making answers that it goes on, and what then; how many were given up.
static LEFT: AtomicI32 = AtomicI32::new(0);
static THEN: AtomicI32 = AtomicI32::new(0);
static GIVEN_UP: AtomicU32 = AtomicU32::new(0);

extern "C" fn id(_: *mut NcclId) -> c_int {
    SUCCESS
}
extern "C" fn join(_: *mut Comm, _: c_int, _: NcclId, _: c_int, _: *const Settings) -> c_int {
    IN_PROGRESS
}
extern "C" fn state(_: Comm, state: *mut c_int) -> c_int {
    let going_on = LEFT.fetch_sub(1, Ordering::Relaxed) > 0;
    // SAFETY: the caller gives a place to write to.
    unsafe { *state = if going_on { IN_PROGRESS } else { THEN.load(Ordering::Relaxed) } };
    SUCCESS
}
extern "C" fn sum(_: *const c_void, _: *mut c_void, _: usize, _: c_int, _: c_int, _: Comm, _: Handle) -> c_int {
    SUCCESS
}
extern "C" fn abort(_: Comm) -> c_int {
    GIVEN_UP.fetch_add(1, Ordering::Relaxed);
    SUCCESS
}
extern "C" fn words(_: c_int) -> *const c_char {
    c"remote process exited".as_ptr()
}
static FAKE: Library = Library { id, join, state, sum, abort, words };

fn group(left: i32, then: c_int) -> Nccl {
    LEFT.store(left, Ordering::Relaxed);
    THEN.store(then, Ordering::Relaxed);
    Nccl { comm: dangling_mut(), device: Device::Cuda(0), library: &FAKE }
}

#[test]
fn what_waits_for_a_peer_ends_with_it() {
    // All come.
    group(3, SUCCESS).wait("join", IN_PROGRESS, &|| false).unwrap();
    // One dies before it has joined: NCCL alone would wait for ever.
    let (asked, mut waiting) = (Cell::new(0), group(i32::MAX, SUCCESS));
    let gone = || asked.replace(asked.get() + 1) > 4;
    let given_up = GIVEN_UP.load(Ordering::Relaxed);
    let error = waiting.wait("join", IN_PROGRESS, &gone).unwrap_err();
    assert!(error.to_string().contains("a member is gone"), "{error}");
    assert!(waiting.comm.is_null());
    drop(waiting);
    assert_eq!(GIVEN_UP.load(Ordering::Relaxed), given_up + 1, "once");
    // NCCL notices by itself.
    let mut failing = group(2, 6);
    let error = failing.wait("sum", IN_PROGRESS, &|| false).unwrap_err();
    assert!(error.to_string().contains("remote process exited") && failing.comm.is_null(), "{error}");
}

#[test]
fn settings_are_laid_out_as_in_nccl_2_14() {
    assert_eq!((size_of::<Settings>(), std::mem::offset_of!(Settings, blocking)), (24, 16));
}
