//! What adds up tensors over processes: NCCL between GPUs, else Gloo by way of main memory.

use crate::config::Reduce;
use crate::error::TrainError;
use crate::ranks::{Ranks, RanksError};
use dflash_profiler::span;
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
#[derive(Default, Serialize, Deserialize)]
struct Ground {
    /// Its GPU, by all that tells it from another's; `None`: the CPU.
    gpu: Option<String>,
    /// Why it has no NCCL.
    why_not: Option<String>,
    /// By which NCCL's members find each other; rank 0 alone has one.
    id: Vec<u8>,
}

/// What all ranks have agreed on before the first sum.
#[derive(Clone)]
pub(super) enum Plan {
    Gloo,
    /// By which the members find each other.
    Nccl(NcclId),
}

impl Plan {
    /// All ranks call it at the same time, each with where its tensors are. `auto` that cannot have NCCL although there are
    /// GPUs says why.
    ///
    /// # Errors
    /// A rank is gone, or the configuration asks for what the ranks do not have: then for all of them.
    pub(super) fn agree(ranks: &Ranks, reduce: Reduce, device: Device) -> Result<(Self, Option<String>), TrainError> {
        let all = ranks.gather(&Ground::of(device, reduce, ranks.rank())).map_err(RanksError::from)?;
        Self::of(&all, reduce).map_err(|why| TrainError::Reduce { why })
    }

    fn of(all: &[Ground], reduce: Reduce) -> Result<(Self, Option<String>), String> {
        if reduce == Reduce::Gloo {
            return Ok((Self::Gloo, None));
        }
        let id = || all.first().and_then(|first| NcclId::from_bytes(&first.id));
        let why = match (why_not(all), id()) {
            (None, Some(id)) => return Ok((Self::Nccl(id), None)),
            (Some(why), _) => why,
            (None, None) => "rank 0 has no id for NCCL".to_owned(),
        };
        if reduce == Reduce::Nccl {
            return Err(why);
        }
        let worth_it = all.iter().any(|ground| ground.gpu.is_some());
        let note = worth_it.then(|| format!("gradients go by way of main memory (gloo), not by NCCL: {why}"));
        Ok((Self::Gloo, note))
    }
}

impl Engine {
    /// All ranks call it at the same time, each with where its tensors are.
    pub(super) fn join(plan: &Plan, ranks: &Ranks, device: Device) -> Result<Self, TorchError> {
        match plan {
            Plan::Gloo => Ok(Self::Gloo(ranks.gloo()?)),
            Plan::Nccl(id) => {
                let gone = || ranks.ended().is_some();
                Ok(Self::Nccl(Nccl::join(*id, ranks.rank(), ranks.size(), device, &gone)?))
            }
        }
    }

    /// Adds up, in place.
    pub(super) fn sum(&mut self, flat: &mut Tensor, ranks: &Ranks) -> Result<(), TorchError> {
        // Both ways the host waits until it is done.
        let _sync = span!("sync.reduce");
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
        let index = match device {
            Device::Cuda(index) if reduce != Reduce::Gloo => index,
            _ => return Self::default(),
        };
        let gpu = Some(uuid(index).unwrap_or_else(|| by_place(index)));
        let id = if rank == 0 { NcclId::new().map(|id| id.bytes()) } else { Ok(Vec::new()) };
        let why_not = Nccl::why_not().or_else(|| id.as_ref().err().map(ToString::to_string));
        Self { gpu, why_not, id: id.unwrap_or_default() }
    }
}

/// A GPU's own number: containers that share a host's name, or show one GPU by several numbers, do not confuse it.
fn uuid(index: usize) -> Option<String> {
    let device = format!("cuda:{index}");
    let gpus = dflash_profiler::gpu_details();
    gpus.into_iter().find(|gpu| gpu.device == device && !gpu.uuid.is_empty()).map(|gpu| gpu.uuid)
}

/// Where NVIDIA's management library knows nothing of it.
fn by_place(index: usize) -> String {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
    format!("{} {visible} cuda:{index}", dflash_profiler::hostname())
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

    #[test]
    fn auto_says_why_it_does_without_nccl_and_nccl_is_refused() {
        let lacking = [ground(Some("GPU-a"), Some("no library")), ground(Some("GPU-b"), None)];
        let (plan, note) = Plan::of(&lacking, Reduce::Auto).ok().unwrap();
        assert!(matches!(plan, Plan::Gloo) && note.unwrap().ends_with("rank 0: no library"));
        assert_eq!(Plan::of(&lacking, Reduce::Nccl).err().unwrap(), "rank 0: no library");
        assert!(Plan::of(&lacking, Reduce::Gloo).ok().unwrap().1.is_none());
        // On CPUs nobody misses it.
        let cpus = [ground(None, None), ground(None, None)];
        assert!(Plan::of(&cpus, Reduce::Auto).ok().unwrap().1.is_none());
        assert_eq!(Plan::of(&cpus, Reduce::Nccl).err().unwrap(), "rank 0 trains on a CPU");
        let mut whole = [ground(Some("GPU-a"), None), ground(Some("GPU-b"), None)];
        whole[0].id = vec![7; 128];
        assert!(matches!(Plan::of(&whole, Reduce::Auto), Ok((Plan::Nccl(_), None))));
    }
}
