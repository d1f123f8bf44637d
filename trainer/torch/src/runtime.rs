//! The device runtime's own event functions, found in the process at run time: half the cost of libtorch's generic ones.
//!
//! libtorch_cpu brings libcudart into the process, so `dlsym` finds its functions without headers and without linking.
//! Their signatures are part of CUDA's stable C interface.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::{Result, TorchError};

/// cudaEvent_t, cudaStream_t.
pub(crate) type Handle = *mut c_void;

const SUCCESS: c_int = 0;
/// cudaErrorNotReady: an answer rather than an error.
const NOT_READY: c_int = 600;
/// cudaEventDisableTiming.
const DISABLE_TIMING: c_uint = 2;

/// libcudart's functions. Each is safe to call from any thread.
#[derive(Debug)]
pub(crate) struct Runtime {
    create: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    record: unsafe extern "C" fn(Handle, Handle) -> c_int,
    query: unsafe extern "C" fn(Handle) -> c_int,
    synchronize: unsafe extern "C" fn(Handle) -> c_int,
    elapsed: unsafe extern "C" fn(*mut f32, Handle, Handle) -> c_int,
    wait: unsafe extern "C" fn(Handle, Handle, c_uint) -> c_int,
    device: unsafe extern "C" fn(*mut c_int) -> c_int,
    set_device: unsafe extern "C" fn(c_int) -> c_int,
    last_error: unsafe extern "C" fn() -> c_int,
    words: unsafe extern "C" fn(c_int) -> *const c_char,
    memory: unsafe extern "C" fn(*mut usize, *mut usize) -> c_int,
}

/// An event of the runtime's. [`Event`](crate::Event) sees to it that it is recorded on its own device's streams only.
#[derive(Debug)]
pub(crate) struct RuntimeEvent(Handle);

impl Runtime {
    /// The process's libcudart, if it has one. A static one inside libtorch_cuda is not seen.
    pub(crate) fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Runtime>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        // SAFETY: the types are those of cuda_runtime_api.h, which the fields repeat.
        unsafe {
            Some(Self {
                create: symbol(c"cudaEventCreateWithFlags")?,
                destroy: symbol(c"cudaEventDestroy")?,
                record: symbol(c"cudaEventRecord")?,
                query: symbol(c"cudaEventQuery")?,
                synchronize: symbol(c"cudaEventSynchronize")?,
                elapsed: symbol(c"cudaEventElapsedTime")?,
                wait: symbol(c"cudaStreamWaitEvent")?,
                device: symbol(c"cudaGetDevice")?,
                set_device: symbol(c"cudaSetDevice")?,
                last_error: symbol(c"cudaGetLastError")?,
                words: symbol(c"cudaGetErrorString")?,
                memory: symbol(c"cudaMemGetInfo")?,
            })
        }
    }

    /// An event of device `index`.
    pub(crate) fn event(&self, index: i16, timed: bool) -> Result<RuntimeEvent> {
        let mut handle = null_mut();
        self.on_device(index, || {
            // SAFETY: `handle` is valid to write to.
            unsafe { (self.create)(&raw mut handle, if timed { 0 } else { DISABLE_TIMING }) }
        })
        .and_then(|code| self.check("making an event", code))?;
        Ok(RuntimeEvent(handle))
    }

    /// Records on a stream of the event's device, which is `index`.
    #[inline]
    pub(crate) fn record(&self, event: &RuntimeEvent, stream: Handle, index: i16) -> Result<()> {
        // SAFETY: the event lives as long as its owner, streams of libtorch live as long as the process.
        let record = || unsafe { (self.record)(event.0, stream) };
        // Null is the default stream of whatever device is current; any other handle knows its device.
        let code = if stream.is_null() { self.on_device(index, record)? } else { record() };
        self.check("recording an event", code)
    }

    #[inline]
    pub(crate) fn query(&self, event: &RuntimeEvent) -> Result<bool> {
        // SAFETY: the event lives as long as its owner.
        let code = unsafe { (self.query)(event.0) };
        if code == NOT_READY {
            self.forget_error();
            return Ok(false);
        }
        self.check("asking an event", code).map(|()| true)
    }

    pub(crate) fn synchronize(&self, event: &RuntimeEvent) -> Result<()> {
        // SAFETY: the event lives as long as its owner.
        self.check("waiting for an event", unsafe { (self.synchronize)(event.0) })
    }

    /// Lets `stream`, of device `index`, wait for the event.
    pub(crate) fn wait(&self, stream: Handle, index: i16, event: &RuntimeEvent) -> Result<()> {
        // SAFETY: the event lives as long as its owner, streams of libtorch live as long as the process.
        let code = self.on_device(index, || unsafe { (self.wait)(stream, event.0, 0) })?;
        self.check("letting a stream wait", code)
    }

    /// Milliseconds between two events of one device.
    pub(crate) fn elapsed_ms(&self, begin: &RuntimeEvent, end: &RuntimeEvent) -> Result<f32> {
        let mut ms = 0.0;
        // SAFETY: `ms` is valid to write to, and both events live as long as their owners.
        let code = unsafe { (self.elapsed)(&raw mut ms, begin.0, end.0) };
        if code == NOT_READY {
            self.forget_error();
            return Err(TorchError::NotReady);
        }
        self.check("the time between two events", code).map(|()| ms)
    }

    /// Bytes of device `index` that nobody has taken.
    pub(crate) fn free_memory(&self, index: i16) -> Result<usize> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid to write to.
        let code = self.on_device(index, || unsafe { (self.memory)(&raw mut free, &raw mut total) })?;
        self.check("asking for free memory", code).map(|()| free)
    }

    /// Frees the event. At the end of a process the runtime may have gone before; there is nothing left to free then.
    pub(crate) fn destroy(&self, event: &RuntimeEvent) {
        // SAFETY: the owner calls this once, when nothing can use the event any more. The device may still have to get
        // to it: CUDA frees it then.
        if unsafe { (self.destroy)(event.0) } != SUCCESS {
            self.forget_error();
        }
    }

    /// Runs `call` with `index` as the thread's current device, and then makes the one before current again.
    pub(crate) fn on_device(&self, index: i16, call: impl FnOnce() -> c_int) -> Result<c_int> {
        let (index, mut before) = (c_int::from(index), 0);
        // SAFETY: `before` is valid to write to.
        self.check("the current device", unsafe { (self.device)(&raw mut before) })?;
        if before == index {
            return Ok(call());
        }
        // SAFETY: takes a number; a wrong one is an error.
        self.check("changing the device", unsafe { (self.set_device)(index) })?;
        let code = call();
        // SAFETY: as above.
        self.check("changing the device back", unsafe { (self.set_device)(before) })?;
        Ok(code)
    }

    #[inline]
    fn check(&self, doing: &'static str, code: c_int) -> Result<()> {
        if code == SUCCESS { Ok(()) } else { Err(self.refused(doing, code)) }
    }

    #[cold]
    fn refused(&self, doing: &'static str, code: c_int) -> TorchError {
        self.forget_error();
        // SAFETY: gives a static text for any number.
        let words = unsafe { (self.words)(code) };
        let words = if words.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: not null, so it is a NUL-terminated static text.
            unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
        };
        TorchError::Torch { doing, words }
    }

    /// The runtime remembers a thread's last error, and libtorch asks for it after each kernel: ours is not its.
    fn forget_error(&self) {
        // SAFETY: takes nothing; the answer is known already.
        unsafe { (self.last_error)() };
    }
}

// SAFETY: CUDA's event functions may be called from any thread; Event allows one writer at a time.
unsafe impl Send for RuntimeEvent {}
// SAFETY: what takes it by reference asks only (cudaEventQuery, cudaEventElapsedTime), or is `record`, which Event guards
// with `&mut`.
unsafe impl Sync for RuntimeEvent {}

/// A function of the process by its name.
///
/// # Safety
/// `F` is the type of a pointer to that function.
pub(crate) unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: `name` is NUL-terminated.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: not null, so it is the function's address; that it has type `F` is the caller's promise.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_the_runtime_says_so_in_words() {
        let Some(runtime) = Runtime::get() else {
            eprintln!("SKIPPED without_a_driver_the_runtime_says_so_in_words: this libtorch brings no libcudart");
            return;
        };
        if crate::gpu_count() > 0 {
            eprintln!("SKIPPED without_a_driver_the_runtime_says_so_in_words: there is a driver");
            return;
        }
        let error = runtime.event(0, true).unwrap_err().to_string();
        assert!(error.contains("CUDA driver") || error.contains("CUDA-capable device"), "{error}");
    }

    #[test]
    fn a_function_that_is_not_there_is_not_found() {
        // SAFETY: nothing is called.
        let found = unsafe { symbol::<unsafe extern "C" fn()>(c"dflash_no_such_function") };
        assert!(found.is_none());
    }
}
