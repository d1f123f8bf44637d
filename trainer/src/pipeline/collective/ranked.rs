//! Drafters of several processes as one group: those of a process add up among themselves, and the first of each adds up
//! over the processes.

use super::engine::{Engine, Plan};
use super::{Collective, Ended, Leave, Threads, wide};
use crate::config::Reduce;
use crate::error::TrainError;
use crate::ranks::{Gone, Ranks};
use dflash_torch::TorchError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tch::{Device, Tensor};

/// A drafter of one of several processes.
pub struct Ranked {
    local: Threads,
    /// The first one's in its process.
    across: Option<Across>,
    /// Number of the process's first drafter among all, and how many there are in all processes.
    first: usize,
    all: usize,
}

/// A process's end of the group of processes.
pub struct Across {
    ranks: Arc<Ranks>,
    plan: Plan,
    /// Made when it is first needed.
    engine: Option<Engine>,
    ended: bool,
}

/// What a process says in an exchange.
#[derive(Serialize, Deserialize)]
struct Said {
    /// It has no more to do.
    left: bool,
    /// As bits: JSON knows no infinity.
    numbers: Vec<u64>,
}

impl Ranked {
    /// The drafters of this process, of which the first is number `first` among `all`.
    #[must_use]
    pub fn group(names: &[String], across: Across, first: usize, all: usize) -> Vec<Self> {
        let mut across = Some(across);
        Threads::group(names).into_iter().map(|local| Self { local, across: across.take(), first, all }).collect()
    }

    /// What the first drafter does over the processes, and the others wait for.
    fn first_does(
        &mut self,
        numbers: &mut [f64],
        tensors: &mut [Tensor],
        work: impl FnOnce(&mut Across, &mut [f64], &mut [Tensor]) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        if let Some(across) = &mut self.across
            && let Err(ended) = work(across, numbers, tensors)
        {
            self.local.end(ended.clone());
            return Err(ended);
        }
        self.local.hand_out(numbers, tensors)
    }
}

impl Collective for Ranked {
    fn rank(&self) -> usize {
        self.first + self.local.rank()
    }

    fn size(&self) -> usize {
        self.all
    }

    fn sum_numbers(&mut self, values: &mut [f64]) -> Result<(), Ended> {
        self.local.sum_numbers(values)?;
        self.first_does(values, &mut [], |across, values, _| across.sum_numbers(values))
    }

    fn sum(&mut self, tensors: &mut [Tensor]) -> Result<(), Ended> {
        self.local.sum(tensors)?;
        self.first_does(&mut [], tensors, |across, _, tensors| across.sum(tensors))
    }

    fn leave(&mut self, how: Leave) {
        self.local.leave(how);
        // Of a failure the other processes hear with its cause, once this process knows it.
        if let (Some(across), Leave::Done) = (&mut self.across, how) {
            across.leave();
        }
    }
}

impl Across {
    /// Of this process, whose gradients are on `device`. All ranks call it at the same time. What the user should know of
    /// how sums are made comes with it.
    ///
    /// # Errors
    /// A rank is gone, or the ranks lack what `reduce` asks for.
    pub fn new(ranks: Arc<Ranks>, reduce: Reduce, device: Device) -> Result<(Self, Option<String>), TrainError> {
        let (plan, note) = Plan::agree(&ranks, reduce, device)?;
        Ok((Self { ranks, plan, engine: None, ended: false }, note))
    }

    fn exchange(&mut self, said: &Said) -> Result<Vec<Said>, Ended> {
        let all = self.ranks.gather(said);
        let left = all.as_ref().map(|all| all.iter().position(|one| one.left));
        self.ended |= !matches!(left, Ok(None));
        match left {
            Err(gone) => Err(gone.clone().into()),
            Ok(Some(rank)) => Err(Ended::Left(format!("rank {rank}"))),
            Ok(None) => Ok(all?),
        }
    }

    fn sum_numbers(&mut self, values: &mut [f64]) -> Result<(), Ended> {
        let numbers = values.iter().map(|value| value.to_bits()).collect();
        let all = self.exchange(&Said { left: false, numbers })?;
        for (i, value) in values.iter_mut().enumerate() {
            *value = all.iter().filter_map(|one| one.numbers.get(i)).map(|bits| f64::from_bits(*bits)).sum();
        }
        Ok(())
    }

    /// One tensor of all: fewer and longer messages.
    fn sum(&mut self, tensors: &mut [Tensor]) -> Result<(), Ended> {
        let _guard = tch::no_grad_guard();
        for same in tensors.chunk_by_mut(|a, b| wide(a.kind()) == wide(b.kind())) {
            let kind = wide(same[0].kind());
            let parts: Vec<_> = same.iter().map(|t| t.to_kind(kind).reshape([-1])).collect();
            let mut flat = if let [one] = &parts[..] { one.shallow_clone() } else { Tensor::cat(&parts, 0) };
            self.sum_flat(&mut flat)?;
            let mut at = 0;
            for tensor in same {
                let length = tensor.numel() as i64;
                let sum = flat.narrow(0, at, length).view(&tensor.size()[..]);
                *tensor = sum.to_device(tensor.device()).to_kind(tensor.kind());
                at += length;
            }
        }
        Ok(())
    }

    fn sum_flat(&mut self, flat: &mut Tensor) -> Result<(), Ended> {
        let ranks = Arc::clone(&self.ranks);
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::join(&self.plan, &ranks, flat.device()).map_err(|error| self.broken(&error))?,
        };
        engine.sum(flat, &ranks).map_err(|error| self.broken(&error))?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Who is to blame for a sum that broke off.
    fn broken(&mut self, error: &TorchError) -> Ended {
        self.ended = true;
        let unknown = || Gone {
            rank: self.ranks.rank(),
            who: String::new(),
            cause: format!("failed: {error}; no rank says that it was the cause"),
        };
        self.ranks.cause().unwrap_or_else(unknown).into()
    }

    /// The others get to know it in the exchange that they make next.
    fn leave(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            let _ = self.exchange(&Said { left: true, numbers: Vec::new() });
        }
    }
}
