//! NCCL: sums of tensors over processes, from GPU to GPU. Its library is opened when it is first asked for; the few
//! functions that are needed are part of its stable C interface.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

use tch::{Device, Kind, Tensor};

use crate::runtime::{Handle, Runtime, symbol};
use crate::{Event, Result, Stream, TorchError, device, load_cuda};

const LIBRARY: &str = "libnccl.so.2";
const SUCCESS: c_int = 0;
/// ncclInProgress: a call that does not block goes on.
const IN_PROGRESS: c_int = 7;
/// ncclSum, ncclFloat32, ncclFloat64.
const SUM: c_int = 0;
const FLOAT: c_int = 7;
const DOUBLE: c_int = 8;

/// ncclUniqueId: by which the members of a group find each other. One makes it and tells the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NcclId([c_char; 128]);

/// ncclComm_t.
type Comm = *mut c_void;

/// What ncclConfig_t began with in NCCL 2.14, which brought it. Later versions have more fields; from `size` and `version` they
/// know that the caller's ends here, and take their defaults for the rest.
#[repr(C)]
struct Settings {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    padding: c_int,
}

/// Calls return at once: what waits for a peer can be given up.
static AT_ONCE: Settings =
    Settings { size: size_of::<Settings>(), magic: 0xcafe_beef, version: 21400, blocking: 0, padding: c_int::MIN };

/// NCCL's functions.
struct Library {
    id: unsafe extern "C" fn(*mut NcclId) -> c_int,
    join: unsafe extern "C" fn(*mut Comm, c_int, NcclId, c_int, *const Settings) -> c_int,
    state: unsafe extern "C" fn(Comm, *mut c_int) -> c_int,
    sum: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, Handle) -> c_int,
    abort: unsafe extern "C" fn(Comm) -> c_int,
    words: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// A process's end of a group of GPUs.
pub struct Nccl {
    comm: Comm,
    device: Device,
    library: &'static Library,
}

// SAFETY: a communicator belongs to no thread; `&mut self` keeps two calls apart.
unsafe impl Send for Nccl {}

impl Library {
    fn get() -> Result<&'static Self> {
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

    fn check(&self, doing: &'static str, code: c_int) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: gives a static NUL-terminated text for any number.
        let words = unsafe { CStr::from_ptr((self.words)(code)) }.to_string_lossy().into_owned();
        Err(TorchError::Torch { doing, words: format!("{words}; NCCL_DEBUG=WARN says more") })
    }
}

impl NcclId {
    /// A new one, for rank 0.
    ///
    /// # Errors
    /// There is no NCCL, or no network interface that it can use.
    pub fn new() -> Result<Self> {
        let library = Library::get()?;
        let mut id = Self([0; 128]);
        // SAFETY: `id` is valid to write to.
        library.check("make an id for NCCL", unsafe { (library.id)(&raw mut id) })?;
        Ok(id)
    }

    /// To be told to the others.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().map(|byte| byte.cast_unsigned()).collect()
    }

    /// As rank 0 told it; `None`: it has another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let signed: Vec<c_char> = bytes.iter().map(|byte| byte.cast_signed()).collect();
        signed.try_into().ok().map(Self)
    }
}

impl Nccl {
    /// Why there is none on this machine; `None`: there is one.
    #[must_use]
    pub fn why_not() -> Option<String> {
        match Library::get() {
            Err(error) => Some(error.to_string()),
            Ok(_) => Runtime::get().is_none().then(|| "there is no libcudart in the process".to_owned()),
        }
    }

    /// Meets the others. Returns once all have come; each has a GPU of its own. `gone` is asked meanwhile whether a member is.
    ///
    /// # Errors
    /// There is no NCCL, two members share a GPU, a member cannot be reached, or is gone.
    pub fn join(id: NcclId, rank: usize, size: usize, on: Device, gone: &dyn Fn() -> bool) -> Result<Self> {
        const DOING: &str = "join the group of GPUs";
        let library = Library::get()?;
        let lacking = || TorchError::Torch { doing: DOING, words: "there is no libcudart".to_owned() };
        let runtime = Runtime::get().ok_or_else(lacking)?;
        let number = |n: usize| {
            c_int::try_from(n)
                .map_err(|_| TorchError::Torch { doing: DOING, words: format!("{n} is too large a rank") })
        };
        let (rank, size, mut comm) = (number(rank)?, number(size)?, null_mut());
        // SAFETY: `comm` is valid to write to, and the settings to read.
        let join = || unsafe { (library.join)(&raw mut comm, size, id, rank, &raw const AT_ONCE) };
        let code = runtime.on_device(device::gpu(on)?, join)?;
        let mut own = Self { comm, device: on, library };
        own.wait(DOING, code, gone)?;
        Ok(own)
    }

    /// Adds up the members' tensors, in place, behind what the calling thread's stream has queued; returns once that is
    /// done. `gone` is asked meanwhile whether a member is: then the group is of no more use.
    ///
    /// # Errors
    /// The tensor is no float32 or float64 of this GPU, or has gaps; a member is gone; the device failed.
    pub fn sum(&mut self, tensor: &mut Tensor, gone: &dyn Fn() -> bool) -> Result<()> {
        const DOING: &str = "sum over the GPUs";
        let refuse = |words: &str| TorchError::Torch { doing: DOING, words: words.to_owned() };
        let kind = match tensor.kind() {
            Kind::Float => FLOAT,
            Kind::Double => DOUBLE,
            _ => return Err(refuse("only float32 and float64 are summed")),
        };
        if tensor.device() != self.device || !tensor.is_contiguous() {
            return Err(refuse("the tensor is not on the group's GPU, or has gaps"));
        }
        if self.comm.is_null() {
            return Err(refuse("a member is gone"));
        }
        let stream = Stream::current(self.device)?;
        let data = tensor.data_ptr();
        // SAFETY: the memory is the tensor's, which lives until the sum is done, and nobody else has it meanwhile.
        let code = unsafe { (self.library.sum)(data, data, tensor.numel(), kind, SUM, self.comm, stream.0.native) };
        self.wait(DOING, code, gone)?;
        let mut done = Event::untimed(self.device)?;
        done.record(&stream)?;
        while !done.query()? {
            let code = self.state();
            self.look(DOING, code, gone)?;
            // A sum takes milliseconds.
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Waits for what a call has begun, which returned `code`.
    fn wait(&mut self, doing: &'static str, mut code: c_int, gone: &dyn Fn() -> bool) -> Result<()> {
        while code == IN_PROGRESS {
            self.look(doing, code, gone)?;
            std::thread::sleep(Duration::from_micros(50));
            code = self.state();
        }
        self.look(doing, code, gone)
    }

    /// What NCCL says of the group; also of what happened behind its back.
    fn state(&self) -> c_int {
        let mut state = SUCCESS;
        // SAFETY: the communicator was made by `join` and not given up; `state` is valid to write to.
        let asked = unsafe { (self.library.state)(self.comm, &raw mut state) };
        if asked == SUCCESS { state } else { asked }
    }

    /// Gives the group up if it has failed, or a member is gone.
    fn look(&mut self, doing: &'static str, code: c_int, gone: &dyn Fn() -> bool) -> Result<()> {
        let failed = if code == IN_PROGRESS { Ok(()) } else { self.library.check(doing, code) };
        if failed.is_ok() && !gone() {
            return Ok(());
        }
        self.abort();
        failed.and_then(|()| Err(TorchError::Torch { doing, words: "a member is gone".to_owned() }))
    }

    /// Also what waits on the device for a member that is gone ends by it.
    fn abort(&mut self) {
        let comm = std::mem::replace(&mut self.comm, null_mut());
        if !comm.is_null() {
            // SAFETY: made by `ncclCommInitRankConfig`, and used no more.
            unsafe { (self.library.abort)(comm) };
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
#[path = "nccl_tests.rs"]
mod tests;
