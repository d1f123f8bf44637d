//! NCCL's library: the few functions that are needed, which are part of its stable C interface. It is opened when it is first
//! asked for.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use crate::nccl::NcclId;
use crate::runtime::{Handle, symbol};
use crate::{Result, TorchError, load_cuda};

const LIBRARY: &str = "libnccl.so.2";
pub(crate) const SUCCESS: c_int = 0;
/// ncclInProgress: a call that does not block goes on.
pub(crate) const IN_PROGRESS: c_int = 7;
/// ncclSum, ncclFloat32, ncclFloat64.
pub(crate) const SUM: c_int = 0;
pub(crate) const FLOAT: c_int = 7;
pub(crate) const DOUBLE: c_int = 8;

/// ncclComm_t.
pub(crate) type Comm = *mut c_void;

/// What ncclConfig_t began with in NCCL 2.14, which brought it. Later versions have more fields; from `size` and `version` they
/// know that the caller's ends here, and take their defaults for the rest.
#[repr(C)]
pub(crate) struct Settings {
    pub(crate) size: usize,
    pub(crate) magic: c_uint,
    pub(crate) version: c_uint,
    pub(crate) blocking: c_int,
    pub(crate) padding: c_int,
}

/// Calls return at once: what waits for a peer can be given up.
pub(crate) static AT_ONCE: Settings =
    Settings { size: size_of::<Settings>(), magic: 0xcafe_beef, version: 21400, blocking: 0, padding: c_int::MIN };

/// NCCL's functions.
pub(crate) struct Library {
    pub(crate) id: unsafe extern "C" fn(*mut NcclId) -> c_int,
    pub(crate) join: unsafe extern "C" fn(*mut Comm, c_int, NcclId, c_int, *const Settings) -> c_int,
    pub(crate) state: unsafe extern "C" fn(Comm, *mut c_int) -> c_int,
    pub(crate) sum: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, Handle) -> c_int,
    pub(crate) abort: unsafe extern "C" fn(Comm) -> c_int,
    pub(crate) words: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Library {
    pub(crate) fn get() -> Result<&'static Self> {
        static FOUND: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        // libtorch_cuda brings it along, where that is opened; scripts/libtorch puts both into one place.
        FOUND
            .get_or_init(|| {
                let beside = match load_cuda() {
                    crate::CudaLibrary::Loaded(path) => path.with_file_name(LIBRARY),
                    _ => LIBRARY.into(),
                };
                let opened =
                    dflash_sys::dlopen_global(&beside).or_else(|_| dflash_sys::dlopen_global(Path::new(LIBRARY)));
                opened.and_then(|()| {
                    Self::find().ok_or_else(|| format!("{LIBRARY} lacks a function: it is older than NCCL 2.14"))
                })
            })
            .as_ref()
            .map_err(|why| TorchError::Torch {
                doing: "open NCCL",
                words: format!("{why}; run scripts/libtorch --cuda"),
            })
    }

    fn find() -> Option<Self> {
        // SAFETY: the types are those of nccl.h, which the fields repeat.
        unsafe {
            Some(Self {
                id: symbol(c"ncclGetUniqueId")?,
                join: symbol(c"ncclCommInitRankConfig")?,
                state: symbol(c"ncclCommGetAsyncError")?,
                sum: symbol(c"ncclAllReduce")?,
                abort: symbol(c"ncclCommAbort")?,
                words: symbol(c"ncclGetErrorString")?,
            })
        }
    }

    pub(crate) fn check(&self, doing: &'static str, code: c_int) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: gives a static NUL-terminated text for any number.
        let words = unsafe { CStr::from_ptr((self.words)(code)) }.to_string_lossy().into_owned();
        Err(TorchError::Torch { doing, words: format!("{words}; NCCL_DEBUG=WARN says more") })
    }
}
