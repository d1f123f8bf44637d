//! What adds up tensors over processes: NCCL between GPUs, else Gloo by way of main memory.

use crate::config::Reduce;
use crate::ranks::Ranks;
use dflash_torch::{Gloo, Nccl, NcclId, TorchError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use tch::{Device, Tensor};

/// One of them, the same at all ranks.
pub(super) enum Engine {
    Gloo(Gloo),
    Nccl(Nccl),
}

/// What a rank has.
#[derive(Serialize, Deserialize)]
struct Ground {
    /// Its GPU, by all that tells it from another's; `None`: the CPU.
    gpu: Option<String>,
    /// Why it has no NCCL.
    why_not: Option<String>,
    /// By which NCCL's members find each other; rank 0 alone has one.
    id: Vec<u8>,
}

impl Engine {
    /// All ranks call it at the same time, each with where its tensors are.
    pub(super) fn choose(ranks: &Ranks, reduce: Reduce, device: Device) -> Result<Self, TorchError> {
        let own = Ground::of(device, reduce, ranks.rank());
        let gone = |why: String| TorchError::Torch { doing: "choose how to sum", words: why };
        let all = ranks.gather(&own).map_err(|error| gone(error.to_string()))?;
        let why_not = why_not(&all);
        match (reduce, why_not) {
            (Reduce::Nccl, Some(why)) => Err(gone(format!("[pipeline] reduce = \"nccl\": {why}"))),
            (Reduce::Auto | Reduce::Nccl, None) => {
                let id = all.first().and_then(|first| NcclId::from_bytes(&first.id));
                let id = id.ok_or_else(|| gone("rank 0 has no id for NCCL".to_owned()))?;
                Ok(Self::Nccl(Nccl::join(id, ranks.rank(), ranks.size(), device)?))
            }
            _ => Ok(Self::Gloo(ranks.gloo()?)),
        }
    }

    /// Adds up, in place.
    pub(super) fn sum(&mut self, flat: &mut Tensor, ranks: &Ranks) -> Result<(), TorchError> {
        match self {
            Self::Nccl(nccl) => nccl.sum(flat, &|| ranks.ended().is_some()),
            Self::Gloo(gloo) => {
                let mut host = flat.to_device(Device::Cpu);
                gloo.sum(&mut host)?;
                *flat = host.to_device(flat.device());
                Ok(())
            }
        }
    }
}

impl Ground {
    fn of(device: Device, reduce: Reduce, rank: usize) -> Self {
        let Device::Cuda(index) = device else { return Self { gpu: None, why_not: None, id: Vec::new() } };
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
        let gpu = Some(format!("{} {visible} cuda:{index}", dflash_profiler::hostname()));
        if reduce == Reduce::Gloo {
            return Self { gpu, why_not: None, id: Vec::new() };
        }
        let id = if rank == 0 { NcclId::new().map(|id| id.bytes()) } else { Ok(Vec::new()) };
        let why_not = Nccl::why_not().or_else(|| id.as_ref().err().map(ToString::to_string));
        Self { gpu, why_not, id: id.unwrap_or_default() }
    }
}

/// Why NCCL cannot be used by all.
fn why_not(all: &[Ground]) -> Option<String> {
    let mut seen = HashSet::new();
    for (rank, ground) in all.iter().enumerate() {
        match (&ground.gpu, &ground.why_not) {
            (None, _) => return Some(format!("rank {rank} trains on a CPU")),
            (_, Some(why)) => return Some(format!("rank {rank}: {why}")),
            (Some(gpu), None) if !seen.insert(gpu) => {
                return Some(format!("rank {rank} shares its GPU with another rank, which NCCL does not allow"));
            }
            (Some(_), None) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(gpu: Option<&str>, why_not: Option<&str>) -> Ground {
        Ground { gpu: gpu.map(str::to_owned), why_not: why_not.map(str::to_owned), id: Vec::new() }
    }

    #[test]
    fn nccl_is_for_ranks_that_have_a_gpu_each() {
        let [a, b] = ["h  cuda:0", "h  cuda:1"];
        let why = |all: &[Ground]| why_not(all).unwrap_or_default();
        assert_eq!(why(&[ground(Some(a), None), ground(Some(b), None)]), "");
        assert_eq!(why(&[ground(Some(a), None), ground(None, None)]), "rank 1 trains on a CPU");
        assert!(why(&[ground(Some(a), None), ground(Some(a), None)]).starts_with("rank 1 shares its GPU"));
        assert_eq!(why(&[ground(Some(a), Some("no library")), ground(Some(b), None)]), "rank 0: no library");
    }
}
