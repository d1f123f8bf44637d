//! The world of libtorch: real models on real devices.

mod drafter;
mod features;
mod target;

pub(super) use drafter::{Learner, replica};
pub(super) use features::Features;
pub(super) use target::{Poster, Reader};

use super::work::{Load, World};
use crate::model::pad_rows;
use std::marker::PhantomData;
use tch::Tensor;

/// libtorch's world.
pub(super) struct Torch<'a>(PhantomData<&'a ()>);

impl<'a> World for Torch<'a> {
    type Ids = Tensor;
    type Fresh = Vec<Tensor>;
    type Packed = Vec<Tensor>;
    type Taps = Tensor;
    type Load = Padder;
    type Target = Reader<'a>;
    type Post = Poster<'a>;
    type Drafter = Learner<'a>;
}

/// Pads rows with zeros.
pub(super) struct Padder;

impl Load<Torch<'_>> for Padder {
    fn pack(&mut self, rows: &[&[i64]]) -> Result<Tensor, String> {
        Ok(pad_rows(rows))
    }
}
