//! The world of libtorch: real models on real devices.

mod drafter;
mod features;
mod overlap;
mod rehearsal;
mod target;

pub(super) use drafter::Learner;
pub(super) use features::KeptStates;
pub(super) use rehearsal::Largest;
pub(super) use target::{Poster, Reader};

use super::work::{Load, World};
use crate::model::pad_rows;
use dflash_torch::{Handoff, Moment};
use std::marker::PhantomData;
use tch::{Device, Tensor};

/// libtorch's world.
pub(super) struct Torch<'a>(PhantomData<&'a ()>);

impl<'a> World for Torch<'a> {
    type Ids = Tensor;
    type Fresh = Fresh;
    type Packed = Vec<Tensor>;
    type Taps = Handoff;
    type Load = Padder<'a>;
    type Target = Reader<'a>;
    type Post = Poster<'a>;
    type Drafter = Learner<'a>;
}

/// Taps where a target's stream leaves them.
pub(super) struct Fresh {
    parts: Vec<Tensor>,
    made: Moment,
}

impl Fresh {
    /// Behind what the calling thread has queued so far.
    fn of(parts: Vec<Tensor>) -> Result<Self, String> {
        let made = Moment::of(&parts).map_err(|error| error.to_string())?;
        Ok(Self { parts, made })
    }

    /// For the calling thread's streams.
    fn take(self) -> Result<Vec<Tensor>, String> {
        self.made.reach(&self.parts, Device::Cpu).map_err(|error| error.to_string())?;
        Ok(self.parts)
    }
}

/// Pads rows with zeros, and fetches hidden states that are kept.
pub(super) struct Padder<'a>(pub(super) &'a KeptStates);

impl Load<Torch<'_>> for Padder<'_> {
    fn has(&self, sample: usize) -> bool {
        self.0.has(sample)
    }

    fn fetch(&mut self, samples: &[usize]) -> Result<(), String> {
        self.0.fetch(samples)
    }

    fn pack(&mut self, rows: &[&[i64]]) -> Result<Tensor, String> {
        Ok(pad_rows(rows))
    }
}
