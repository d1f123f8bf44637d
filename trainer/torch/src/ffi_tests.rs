//! Exceptions of libtorch end in the shim.

use super::*;
use std::ptr::null_mut;

/// What a call said, if it refused.
fn said(answered: Result<()>) -> String {
    answered.map_or_else(|error| error.to_string(), |()| "no error".to_owned())
}

/// libtorch throws in each of these bodies; past the checks of the modules above, which ask for the GPU first.
#[test]
fn without_a_gpu_each_exception_becomes_a_text() {
    if crate::gpu_count() > 0 {
        eprintln!("SKIPPED without_a_gpu_each_exception_becomes_a_text: there is a GPU");
        return;
    }
    let (mut raw, mut event) = (RawStream::EMPTY, null_mut());
    let mut counters = RawAllocator::default();
    let (mut done, mut trace) = (false, null_mut());
    // SAFETY: every pointer is valid for the call, and each answer goes to `answer` alone.
    let refused = unsafe {
        [
            answer("a", dflash_stream_current(0, &raw mut raw)),
            answer("b", dflash_stream_from_pool(0, true, &raw mut raw)),
            answer("c", dflash_stream_exchange(&raw const raw, &raw mut raw)),
            answer("d", dflash_stream_query(&raw const raw, &raw mut done)),
            answer("e", dflash_stream_synchronize(&raw const raw)),
            answer("f", dflash_event_new(true, &raw mut event)),
            answer("g", dflash_allocator_counters(0, &raw mut counters)),
        ]
    };
    for text in refused.map(said) {
        let reasons = ["not linked with support for cuda", "no caching allocator for a GPU"];
        assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
        assert!(!text.contains("Exception raised from"), "a backtrace is for no user: {text}");
    }
    assert!(event.is_null() && !done);
    // SAFETY: as above. No test of this executable captures.
    let idle = unsafe { [answer("h", dflash_capture_quiet()), answer("i", dflash_capture_stop(&raw mut trace))] };
    assert!(idle.map(said).iter().all(|text| text.contains("no capture runs")));
    assert!(trace.is_null());
}
