//! How hidden states get from a target's device to a drafter's.

use crate::config::Transport as Choice;
use crate::device::{pin, place};
use dflash_profiler::span;
use dflash_torch::{Handoff, Result};
use tch::{Device, Tensor};

/// One target's way to the drafters.
pub(super) trait Transport: Send {
    /// Brings the parts of one batch's taps, `[b, S, …]` each, to where the drafter on `to` can take them, as one
    /// `[b, S, n·D]`. `None`: it is not known yet which drafter it will be. One part is on its way when this returns, behind
    /// what the caller's stream has; several are copied, and waited for, one after the other.
    ///
    /// # Errors
    /// A device refused.
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Result<Handoff>;
}

/// The transport that a configuration asks for. `to_gpus`: some drafter is on a GPU, which copies from pinned memory alone
/// without anybody's waiting.
pub(super) fn new(choice: Choice, to_gpus: bool) -> Box<dyn Transport> {
    match choice {
        Choice::Host => Box::new(Host { to_gpus }),
        Choice::Peer => Box::new(Peer { to_gpus }),
    }
}

/// By way of main memory; on one device there is nothing to copy. Pinned pages come from libtorch's cache, which hands them
/// out again only after the copies to and from them.
struct Host {
    to_gpus: bool,
}

/// Straight to the drafter's device; by way of main memory while that is not known.
struct Peer {
    to_gpus: bool,
}

impl Transport for Host {
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Result<Handoff> {
        let stays = |part: &Tensor| to == Some(part.device());
        let to = if parts.iter().all(stays) { to.unwrap_or(Device::Cpu) } else { Device::Cpu };
        moved(&parts, to, self.to_gpus)
    }
}

impl Transport for Peer {
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Result<Handoff> {
        moved(&parts, to.unwrap_or(Device::Cpu), self.to_gpus)
    }
}

fn moved(parts: &[Tensor], to: Device, to_gpus: bool) -> Result<Handoff> {
    match parts {
        [one] if to == Device::Cpu && one.device().is_cuda() => {
            // libtorch gives pinned memory to a copy that nobody waits for.
            Handoff::from(one.to_device_(to, one.kind(), true, true), one.device())
        }
        [one] if to == Device::Cpu && to_gpus => Handoff::of(pin(one)),
        [one] => Handoff::of(place(one, to)),
        many => Handoff::of(one_by_one(many, to)),
    }
}

fn one_by_one(parts: &[Tensor], to: Device) -> Tensor {
    // From a GPU to main memory the host waits for the device.
    let waits = to == Device::Cpu && parts.iter().any(|part| part.device().is_cuda());
    let _sync = waits.then(|| span!("sync.copy"));
    let copies: Vec<Tensor> = parts.iter().map(|part| part.to_device(to)).collect();
    joined(&copies)
}

/// One tensor of its parts; a single one is that already.
pub(super) fn joined(parts: &[Tensor]) -> Tensor {
    match parts {
        [one] => one.shallow_clone(),
        many => Tensor::cat(many, -1),
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
