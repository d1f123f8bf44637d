//! How hidden states get from a target's device to a drafter's.

use crate::config::Transport as Choice;
use dflash_profiler::span;
use tch::{Device, Tensor};

/// One target's way to the drafters.
pub(super) trait Transport: Send {
    /// Brings the parts of one batch's taps, `[b, S, …]` each, to where the drafter on `to` can take them, as one
    /// `[b, S, n·D]`. `None`: it is not known yet which drafter it will be. Several parts are copied, and waited for, one
    /// after the other.
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Tensor;
}

/// The transport that a configuration asks for.
pub(super) fn new(choice: Choice) -> Box<dyn Transport> {
    match choice {
        Choice::Host => Box::new(Host),
        Choice::Peer => Box::new(Peer),
    }
}

/// By way of main memory; on one device there is nothing to copy.
struct Host;

/// Straight to the drafter's device; by way of main memory while that is not known.
struct Peer;

impl Transport for Host {
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Tensor {
        let stays = |part: &Tensor| to == Some(part.device());
        moved(&parts, if parts.iter().all(stays) { to.unwrap_or(Device::Cpu) } else { Device::Cpu })
    }
}

impl Transport for Peer {
    fn send(&mut self, parts: Vec<Tensor>, to: Option<Device>) -> Tensor {
        moved(&parts, to.unwrap_or(Device::Cpu))
    }
}

fn moved(parts: &[Tensor], to: Device) -> Tensor {
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
mod tests {
    use super::*;
    use tch::Kind;

    #[test]
    fn every_way_gives_the_same_bits() {
        let tap = |n: i64| Tensor::rand([2, 3, n], (Kind::Float, Device::Cpu));
        let taps = vec![tap(4), tap(2)];
        let want = Tensor::cat(&taps, -1);
        for choice in [Choice::Host, Choice::Peer] {
            for to in [Some(Device::Cpu), None] {
                let one_by_one = taps.iter().map(Tensor::shallow_clone).collect();
                assert_eq!(new(choice).send(one_by_one, to), want);
                assert_eq!(new(choice).send(vec![joined(&taps)], to), want);
            }
        }
    }
}
