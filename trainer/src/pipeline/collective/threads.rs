//! A group of threads of one process: they lay their parts on a board, and each adds up what is its to add.

use super::{Collective, Ended, Leave, wide};
use crate::model::kernels::sound;
use dflash_torch::Moment;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tch::{Device, Tensor};

/// A member of a group of threads. Dropping it is leaving; a member that panics has failed.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    name: String,
    board: Arc<Board>,
}

#[derive(Debug)]
struct Board {
    round: Mutex<Round>,
    changed: Condvar,
}

/// One exchange: all lay down, then all pick up.
#[derive(Debug)]
struct Round {
    parts: Vec<Option<Part>>,
    laid: usize,
    /// Members that have yet to pick up; no one lays down meanwhile.
    picking: usize,
    ended: Option<Ended>,
}

#[derive(Debug, Default)]
struct Part {
    numbers: Vec<f64>,
    tensors: Vec<Tensor>,
    /// When the tensors are there.
    made: Moment,
}

impl Part {
    /// Tensors behind what the calling thread has queued so far.
    fn of(tensors: Vec<Tensor>) -> Self {
        Self { numbers: Vec::new(), made: sound(Moment::of(&tensors)), tensors }
    }

    fn another(&self) -> Self {
        let tensors = self.tensors.iter().map(Tensor::shallow_clone).collect();
        Self { numbers: self.numbers.clone(), tensors, made: self.made.clone() }
    }

    /// The tensors, for the calling thread's streams.
    fn taken(self) -> Vec<Tensor> {
        sound(self.made.reach(&self.tensors, Device::Cpu));
        self.tensors
    }
}

impl Threads {
    /// The members of a group, by their names.
    #[must_use]
    pub fn group(names: &[String]) -> Vec<Self> {
        let parts = names.iter().map(|_| None).collect();
        let round = Mutex::new(Round { parts, laid: 0, picking: 0, ended: None });
        let board = Arc::new(Board { round, changed: Condvar::new() });
        let member = |(rank, name): (usize, &String)| Self { rank, name: name.clone(), board: Arc::clone(&board) };
        names.iter().enumerate().map(member).collect()
    }

    /// Lays a part down, waits for the others', and picks all of them up.
    fn exchange(&self, part: Part) -> Result<Vec<Part>, Ended> {
        let mut round = self.board.lock();
        while round.picking > 0 {
            round = self.board.wait(round);
        }
        let size = round.parts.len();
        round.parts[self.rank] = Some(part);
        round.laid += 1;
        if round.laid == size {
            round.picking = size;
            self.board.changed.notify_all();
        }
        while round.picking == 0 {
            if let Some(ended) = round.ended.clone() {
                return Err(ended);
            }
            round = self.board.wait(round);
        }
        let parts = round.parts.iter().flatten().map(Part::another).collect();
        round.picking -= 1;
        if round.picking == 0 {
            round.laid = 0;
            round.parts.fill_with(|| None);
            self.board.changed.notify_all();
        }
        Ok(parts)
    }

    /// All members get the first one's numbers and tensors.
    pub(super) fn hand_out(&self, numbers: &mut [f64], tensors: &mut [Tensor]) -> Result<(), Ended> {
        if self.size() == 1 {
            return self.alone();
        }
        let own = if self.rank == 0 { tensors.iter().map(Tensor::shallow_clone).collect() } else { Vec::new() };
        let mut part = Part::of(own);
        part.numbers = numbers.to_vec();
        let first = self.exchange(part)?.into_iter().next().unwrap_or_default();
        if self.rank > 0 {
            numbers.copy_from_slice(&first.numbers);
            for (tensor, sum) in tensors.iter_mut().zip(first.taken()) {
                // A copy: the others' are their own.
                *tensor = sum.to_device(tensor.device()).to_kind(tensor.kind()).copy();
            }
        }
        Ok(())
    }

    /// What a member without others has to wait for.
    fn alone(&self) -> Result<(), Ended> {
        self.board.lock().ended.clone().map_or(Ok(()), Err)
    }

    /// Ends the others' calls.
    pub(super) fn end(&self, ended: Ended) {
        // The first to go is the cause.
        self.board.lock().ended.get_or_insert(ended);
        self.board.changed.notify_all();
    }

    /// Which member adds up the i-th tensor.
    fn is_mine(&self, index: usize) -> bool {
        index % self.size() == self.rank
    }
}

impl Collective for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.lock().parts.len()
    }

    fn sum_numbers(&mut self, values: &mut [f64]) -> Result<(), Ended> {
        let parts = self.exchange(Part { numbers: values.to_vec(), ..Part::default() })?;
        for (i, value) in values.iter_mut().enumerate() {
            *value = parts.iter().map(|part| part.numbers[i]).sum();
        }
        Ok(())
    }

    fn sum(&mut self, tensors: &mut [Tensor]) -> Result<(), Ended> {
        if self.size() == 1 {
            return self.alone();
        }
        let own = tensors.iter().map(Tensor::shallow_clone).collect();
        let parts: Vec<_> = self.exchange(Part::of(own))?.into_iter().map(Part::taken).collect();
        let add = |i: usize| added(parts.iter().map(|part| &part[i]));
        let sums = (0..tensors.len()).filter(|&i| self.is_mine(i)).map(add).collect();
        let sums: Vec<_> = self.exchange(Part::of(sums))?.into_iter().map(Part::taken).collect();
        // Nobody reads the parts any more: all have added.
        let mut next: Vec<_> = sums.iter().map(|part| part.iter()).collect();
        let size = next.len();
        for (i, tensor) in tensors.iter_mut().enumerate() {
            if let Some(sum) = next[i % size].next() {
                *tensor = sum.to_device(tensor.device()).to_kind(tensor.kind());
            }
        }
        Ok(())
    }

    fn leave(&mut self, how: Leave) {
        self.end(match how {
            Leave::Done => Ended::Left(self.name.clone()),
            Leave::Failed => Ended::Failed(self.name.clone()),
        });
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.leave(if std::thread::panicking() { Leave::Failed } else { Leave::Done });
    }
}

/// The sum in the members' order, where the first one's part lies.
fn added<'a>(mut parts: impl Iterator<Item = &'a Tensor>) -> Tensor {
    let _guard = tch::no_grad_guard();
    let Some(first) = parts.next() else { return Tensor::new() };
    let kind = wide(first.kind());
    // A copy: the part itself is the member's own.
    let mut sum = first.to_kind(kind).copy();
    for part in parts {
        let _ = sum.g_add_(&part.to_device(sum.device()).to_kind(kind));
    }
    sum
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Round> {
        // Between two statements the board is whole.
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, round: MutexGuard<'a, Round>) -> MutexGuard<'a, Round> {
        self.changed.wait(round).unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
