//! Work that libtorch does not know of, as an operator: it stands in captures by its name.

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Result;
use crate::ffi::{self, answer};

/// Runs `work` inside of an operator of this name. A NUL in the name ends it.
///
/// # Errors
/// libtorch refused; `work` may have run.
pub fn as_operator<T>(name: &str, work: impl FnOnce() -> T) -> Result<T> {
    let name = CString::new(name.split('\0').next().unwrap_or_default()).unwrap_or_default();
    let (mut work, mut outcome) = (Some(work), None);
    let mut run = || outcome = work.take().map(|work| catch_unwind(AssertUnwindSafe(work)));
    let mut call: &mut dyn FnMut() = &mut run;
    // SAFETY: the name is NUL-terminated; `with` points to a closure that outlives the call, and `run_it` takes it for
    // just that. The answer goes to `answer` alone.
    let answered = unsafe {
        let with = (&raw mut call).cast::<c_void>();
        answer("running work as an operator", ffi::dflash_as_operator(name.as_ptr(), run_it, with))
    };
    match outcome {
        Some(Ok(value)) => answered.map(|()| value),
        Some(Err(panic)) => resume_unwind(panic),
        None => Err(answered.err().unwrap_or(crate::TorchError::Torch {
            doing: "running work as an operator",
            words: "it was not run".to_owned(),
        })),
    }
}

/// # Safety
/// `with` points to a `&mut dyn FnMut()`.
unsafe extern "C" fn run_it(with: *mut c_void) {
    // SAFETY: the caller's promise.
    let run = unsafe { &mut *with.cast::<&mut dyn FnMut()>() };
    run();
}
