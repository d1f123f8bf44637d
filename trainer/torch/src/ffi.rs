//! The shim's functions, as native/shim.h declares them. They answer null, or an error's text that is ours to free.

use std::ffi::{CStr, c_char, c_void};

pub(crate) use crate::raw::{
    RawAdamW, RawAdamWLists, RawAllocator, RawAttention, RawEvent, RawGloo, RawKernel, RawMember, RawRendezvous,
    RawStore, RawStream, RawTensor, RawThread, RawTrace, RawWatch,
};
use crate::{Result, TorchError};

type Words = *mut c_char;
type Made = *mut *mut RawTensor;

unsafe extern "C" {
    fn dflash_text_free(text: Words);

    pub(crate) fn dflash_device_count() -> i16;
    pub(crate) fn dflash_stream_current(device: i16, out: *mut RawStream) -> Words;
    pub(crate) fn dflash_stream_from_pool(device: i16, high_priority: bool, out: *mut RawStream) -> Words;
    pub(crate) fn dflash_stream_exchange(stream: *const RawStream, before: *mut RawStream) -> Words;
    pub(crate) fn dflash_stream_query(stream: *const RawStream, done: *mut bool) -> Words;
    pub(crate) fn dflash_stream_synchronize(stream: *const RawStream) -> Words;

    pub(crate) fn dflash_event_new(timed: bool, out: *mut *mut RawEvent) -> Words;
    pub(crate) fn dflash_event_free(event: *mut RawEvent);
    pub(crate) fn dflash_event_record(event: *mut RawEvent, stream: *const RawStream) -> Words;
    pub(crate) fn dflash_event_query(event: *const RawEvent, done: *mut bool) -> Words;
    pub(crate) fn dflash_event_synchronize(event: *const RawEvent) -> Words;
    pub(crate) fn dflash_event_block(event: *const RawEvent, stream: *const RawStream) -> Words;
    pub(crate) fn dflash_event_elapsed(begin: *const RawEvent, end: *const RawEvent, ms: *mut f64) -> Words;

    pub(crate) fn dflash_allocator_counters(device: i16, out: *mut RawAllocator) -> Words;

    pub(crate) fn dflash_capture_running() -> bool;
    pub(crate) fn dflash_capture_prepare(gpu: bool) -> Words;
    pub(crate) fn dflash_capture_start(gpu: bool) -> Words;
    pub(crate) fn dflash_capture_quiet() -> Words;
    pub(crate) fn dflash_capture_in_flight() -> i64;
    pub(crate) fn dflash_capture_stop(out: *mut *mut RawTrace) -> Words;
    pub(crate) fn dflash_trace_save(trace: *mut RawTrace, path: *const c_char) -> Words;
    pub(crate) fn dflash_trace_begin(trace: *const RawTrace) -> u64;
    pub(crate) fn dflash_trace_kernels(trace: *const RawTrace) -> u64;
    pub(crate) fn dflash_trace_threads(trace: *const RawTrace) -> usize;
    pub(crate) fn dflash_trace_thread(trace: *const RawTrace, index: usize) -> RawThread;
    pub(crate) fn dflash_trace_free(trace: *mut RawTrace);
    pub(crate) fn dflash_as_operator(
        name: *const c_char,
        work: unsafe extern "C" fn(*mut c_void),
        with: *mut c_void,
    ) -> Words;

    pub(crate) fn dflash_tensor_record_stream(tensor: *const RawTensor, stream: *const RawStream) -> Words;
    pub(crate) fn dflash_tensor_is_pinned(tensor: *const RawTensor, out: *mut bool) -> Words;
    pub(crate) fn dflash_tensor_pinned(shape: *const i64, dims: usize, kind: i8, out: Made) -> Words;

    pub(crate) fn dflash_gradient_watch(
        weight: *const RawTensor,
        told: unsafe extern "C" fn(*mut c_void, usize),
        with: *mut c_void,
        number: usize,
        out: *mut *mut RawWatch,
    ) -> Words;
    pub(crate) fn dflash_gradient_unwatch(watch: *mut RawWatch);

    pub(crate) fn dflash_kernel_register(
        name: *const c_char,
        entry: *const c_char,
        bytes: *const c_void,
        shape: RawKernel,
    ) -> Words;
    pub(crate) fn dflash_device_capability(device: i16, out: *mut i32) -> Words;
    pub(crate) fn dflash_norm(
        x: *const RawTensor,
        add: *const RawTensor,
        weight: *const RawTensor,
        eps: f64,
        out: Made,
        sum: Made,
    ) -> Words;
    pub(crate) fn dflash_rope(
        x: *const RawTensor,
        weight: *const RawTensor,
        cos: *const RawTensor,
        sin: *const RawTensor,
        position: *const RawTensor,
        eps: f64,
        out: Made,
    ) -> Words;
    pub(crate) fn dflash_swiglu(gate: *const RawTensor, up: *const RawTensor, out: Made) -> Words;
    pub(crate) fn dflash_attend(
        inputs: *const *const RawTensor,
        block: i64,
        window: i64,
        causal: bool,
        out: Made,
    ) -> Words;
    pub(crate) fn dflash_cross_entropy(
        logits: *const RawTensor,
        label: *const RawTensor,
        weight: *const RawTensor,
        loss: Made,
        best: Made,
    ) -> Words;

    pub(crate) fn dflash_attention_allow(kernels: RawAttention) -> Words;
    pub(crate) fn dflash_attention_allowed(out: *mut RawAttention) -> Words;

    pub(crate) fn dflash_norm_of_all(tensors: *const *const RawTensor, count: usize, out: Made) -> Words;
    pub(crate) fn dflash_forget_gradient(tensor: *mut RawTensor) -> Words;
    pub(crate) fn dflash_adamw(
        step: *const RawAdamW,
        tensors: *const *const RawTensor,
        scalars: *const RawTensor,
    ) -> Words;
    pub(crate) fn dflash_fused_adamw(
        lists: *const RawAdamWLists,
        count: usize,
        step: *const RawAdamW,
        divisor: *const RawTensor,
        skip: *const RawTensor,
    ) -> Words;

    pub(crate) fn dflash_store_connect(at: *const RawRendezvous, out: *mut *mut RawStore) -> Words;
    pub(crate) fn dflash_store_set(store: *const RawStore, key: *const c_char, bytes: *const u8, count: usize)
    -> Words;
    pub(crate) fn dflash_store_has(store: *const RawStore, key: *const c_char, there: *mut bool) -> Words;
    pub(crate) fn dflash_store_get(
        store: *const RawStore,
        key: *const c_char,
        bytes: *mut u8,
        room: usize,
        count: *mut usize,
    ) -> Words;
    pub(crate) fn dflash_store_free(store: *mut RawStore);
    pub(crate) fn dflash_gloo_new(store: *const RawStore, member: *const RawMember, out: *mut *mut RawGloo) -> Words;
    pub(crate) fn dflash_gloo_sum(gloo: *const RawGloo, tensor: *mut RawTensor) -> Words;
    pub(crate) fn dflash_gloo_free(gloo: *mut RawGloo);
}

/// What a call of the shim answered, as a result.
///
/// # Safety
/// `words` is what a function of the shim just returned, and is used nowhere else.
#[inline]
pub(crate) unsafe fn answer(doing: &'static str, words: Words) -> Result<()> {
    if words.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so it is a text of the shim's, which is the caller's promise.
    Err(unsafe { refused(doing, words) })
}

#[cold]
unsafe fn refused(doing: &'static str, words: Words) -> TorchError {
    // SAFETY: a NUL-terminated text of the shim's, copied before it is freed, and freed once.
    let text = unsafe {
        let text = CStr::from_ptr(words).to_string_lossy().into_owned();
        dflash_text_free(words);
        text
    };
    TorchError::Torch { doing, words: text }
}

#[cfg(test)]
#[path = "ffi_tests.rs"]
mod tests;
