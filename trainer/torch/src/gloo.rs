//! c10d's Gloo: sums of tensors over processes, on CPUs.

use std::ptr::null_mut;
use std::time::Duration;

use tch::{Device, Tensor};

use crate::ffi::{self, RawGloo, RawMember, RawTensor, answer};
use crate::store::{millis, text};
use crate::{Result, Store, TorchError};

/// Which process of a group this is.
#[derive(Clone, Debug)]
pub struct Member {
    /// From 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// The address of this host by which the others reach it; `GLOO_SOCKET_IFNAME`, an interface, takes its place.
    pub address: String,
    /// How long an exchange may take.
    pub timeout: Duration,
}

/// A process's end of a group, whose members make the same calls in the same order.
#[derive(Debug)]
pub struct Gloo {
    raw: *mut RawGloo,
}

// SAFETY: c10d's process groups belong to no thread; `&mut self` keeps two calls apart.
unsafe impl Send for Gloo {}

impl Gloo {
    /// Meets the others at a store. Returns once all have come.
    ///
    /// # Errors
    /// They do not come in time, or cannot be reached.
    pub fn join(store: &Store, member: &Member) -> Result<Self> {
        const DOING: &str = "join the process group";
        let address = text(DOING, &member.address)?;
        let number = |n: usize| {
            i32::try_from(n).map_err(|_| TorchError::Torch { doing: DOING, words: format!("{n} is too large a rank") })
        };
        let (rank, size) = (number(member.rank)?, number(member.size)?);
        let raw_member = RawMember { address: address.as_ptr(), timeout_ms: millis(member.timeout), rank, size };
        let mut raw = null_mut();
        // SAFETY: the store is alive, the text lives until the end of the call, `raw` is valid to write to.
        unsafe { answer(DOING, ffi::dflash_gloo_new(store.raw, &raw const raw_member, &raw mut raw))? };
        Ok(Self { raw })
    }

    /// Adds up the members' tensors, in place: all get the same bits.
    ///
    /// # Errors
    /// It is not on the CPU or has gaps; or a member is gone, or comes too late.
    pub fn sum(&mut self, tensor: &mut Tensor) -> Result<()> {
        const DOING: &str = "sum over the processes";
        if tensor.device() != Device::Cpu || !tensor.is_contiguous() {
            let words = "Gloo sums tensors of main memory that have no gaps".to_owned();
            return Err(TorchError::Torch { doing: DOING, words });
        }
        let raw = tensor.as_mut_ptr().cast::<RawTensor>();
        // SAFETY: group and tensor are alive, and nobody else has either meanwhile.
        unsafe { answer(DOING, ffi::dflash_gloo_sum(self.raw, raw)) }
    }
}

impl Drop for Gloo {
    fn drop(&mut self) {
        // SAFETY: made by `dflash_gloo_new`, freed once.
        unsafe { ffi::dflash_gloo_free(self.raw) };
    }
}
