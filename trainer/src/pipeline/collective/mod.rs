//! Several drafters as one: what they must agree on goes through a [`Collective`].

mod engine;
mod ranked;
mod threads;

pub use ranked::{Across, Ranked};
pub use threads::Threads;

use std::ops::Range;
use tch::{Kind, Tensor};

/// Why a collective call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// A member has no more to do: the step that was under way is nobody's.
    #[error("{0} has ended")]
    Left(String),
    /// A member failed.
    #[error("{0} has failed")]
    Failed(String),
    /// Another process has failed or is gone.
    #[error(transparent)]
    Gone(#[from] crate::ranks::Gone),
}

/// What a member of a group says when it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It has no more to do.
    Done,
    /// It has failed.
    Failed,
}

/// One member's end of a group whose members call the same methods in the same order. A call returns when all members
/// have made it, with the same bits for all of them; or it fails for all of them, as soon as one has left.
pub trait Collective: Send {
    /// Which member this is, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Sums numbers over all members, in place.
    ///
    /// # Errors
    /// A member has left.
    fn sum_numbers(&mut self, values: &mut [f64]) -> Result<(), Ended>;

    /// Sums tensors over all members, in place, in float32 at least. Shapes must be the same everywhere.
    ///
    /// # Errors
    /// A member has left.
    fn sum(&mut self, tensors: &mut [Tensor]) -> Result<(), Ended>;

    /// Tells the others that this member goes: their calls fail from now on.
    fn leave(&mut self, how: Leave);

    /// The mean of the members' tensors, weighted with what each gives as its weight; in place. With no weight at all the
    /// mean is zero.
    ///
    /// # Errors
    /// A member has left.
    fn mean(&mut self, tensors: &mut [Tensor], weight: f64) -> Result<(), Ended> {
        let share = self.share(weight)?;
        tensors.chunk_by_mut(small_pairs(BUCKET)).try_for_each(|bucket| self.weighted(bucket, share))
    }

    /// What part of all members' weights this one's `weight` is; 0 where nobody has any.
    ///
    /// # Errors
    /// A member has left.
    fn share(&mut self, weight: f64) -> Result<f64, Ended> {
        let mut all = [weight];
        self.sum_numbers(&mut all)?;
        Ok(if all[0] > 0.0 { weight / all[0] } else { 0.0 })
    }

    /// The sum of one bucket's tensors, each times its member's share; in place, in the tensors' own arithmetic.
    ///
    /// # Errors
    /// A member has left.
    fn weighted(&mut self, bucket: &mut [Tensor], share: f64) -> Result<(), Ended> {
        let mut own: Vec<Tensor> = bucket.iter().map(|t| t.to_kind(wide(t.kind())) * share).collect();
        self.sum(&mut own)?;
        for (tensor, sum) in bucket.iter_mut().zip(own) {
            *tensor = sum.to_kind(tensor.kind());
        }
        Ok(())
    }
}

/// Tensors in buckets of so many bytes, by their places, from the last one on: about the order in which a backward pass makes gradients.
pub(super) fn from_the_end(tensors: &[Tensor], bytes: usize) -> Vec<Range<usize>> {
    let backwards: Vec<Tensor> = tensors.iter().rev().map(Tensor::shallow_clone).collect();
    let mut end = tensors.len();
    let range = |bucket: &[Tensor]| {
        let bucket = end - bucket.len()..end;
        end = bucket.start;
        bucket
    };
    backwards.chunk_by(small_pairs(bytes)).map(range).collect()
}

/// Bytes that are summed at a time: large enough to be worth the members' meeting, small enough to need little memory.
pub(super) const BUCKET: usize = 64 << 20;

/// Says of a tensor and the next one whether both are in one bucket of so many bytes.
fn small_pairs(bytes: usize) -> impl FnMut(&Tensor, &Tensor) -> bool {
    let mut sum = 0;
    move |tensor, _| {
        sum += tensor.numel() * 4;
        let full = sum >= bytes;
        if full {
            sum = 0;
        }
        !full
    }
}

/// The arithmetic in which numbers of a kind are summed.
fn wide(kind: Kind) -> Kind {
    if kind == Kind::Double { Kind::Double } else { Kind::Float }
}
