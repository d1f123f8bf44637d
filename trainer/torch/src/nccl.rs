//! NCCL: sums of tensors over processes, from GPU to GPU.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::time::Duration;

use tch::{Device, Kind, Tensor};

use crate::nccl_library::{AT_ONCE, Comm, DOUBLE, FLOAT, IN_PROGRESS, Library, SUCCESS, SUM};
use crate::runtime::Runtime;
use crate::{Event, Result, Stream, TorchError, device};

/// ncclUniqueId: by which the members of a group find each other. One makes it and tells the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NcclId([c_char; 128]);

/// A process's end of a group of GPUs.
pub struct Nccl {
    comm: Comm,
    device: Device,
    library: &'static Library,
}

// SAFETY: a communicator belongs to no thread; `&mut self` keeps two calls apart.
unsafe impl Send for Nccl {}

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
