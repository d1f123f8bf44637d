//! A thread's current stream, for a while.

use std::marker::PhantomData;

use crate::Result;
use crate::ffi::{self, RawStream, answer};
use crate::stream::Stream;

/// While this lives, the calling thread's operators on the stream's device go to the stream; also those of a backward
/// pass, which run where their forward pass ran.
///
/// ```compile_fail
/// fn elsewhere(guard: dflash_torch::CurrentStream) {
///     std::thread::spawn(move || drop(guard));
/// }
/// ```
#[derive(Debug)]
#[must_use = "the stream is current only while the guard lives"]
pub struct CurrentStream {
    before: RawStream,
    // A current stream is its thread's own.
    not_send: PhantomData<*const ()>,
}

impl Stream {
    /// Makes this the calling thread's current stream of its device, until the guard is dropped.
    ///
    /// # Errors
    /// libtorch refused.
    pub fn enter(&self) -> Result<CurrentStream> {
        Ok(CurrentStream { before: exchange(&self.0)?, not_send: PhantomData })
    }
}

impl Drop for CurrentStream {
    fn drop(&mut self) {
        // It was current before, so libtorch has no ground to refuse it; and a destructor has nobody to tell.
        let _ = exchange(&self.before);
    }
}

fn exchange(stream: &RawStream) -> Result<RawStream> {
    let mut before = RawStream::EMPTY;
    // SAFETY: both pointers are valid for the call, and the answer goes to `answer` alone.
    unsafe { answer("making a stream current", ffi::dflash_stream_exchange(stream, &raw mut before)) }?;
    Ok(before)
}
