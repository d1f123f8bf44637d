//! Several drafters as one: what they must agree on goes through a [`Collective`].

mod engine;
mod ranked;
mod threads;

pub use ranked::{Across, Ranked};
pub use threads::Threads;

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
        let mut all = [weight];
        self.sum_numbers(&mut all)?;
        let share = if all[0] > 0.0 { weight / all[0] } else { 0.0 };
        for bucket in tensors.chunk_by_mut(small_pairs()) {
            let mut own: Vec<Tensor> = bucket.iter().map(|t| t.to_kind(wide(t.kind())) * share).collect();
            self.sum(&mut own)?;
            for (tensor, sum) in bucket.iter_mut().zip(own) {
                *tensor = sum.to_kind(tensor.kind());
            }
        }
        Ok(())
    }
}

/// Bytes that are summed at a time: large enough to be worth the members' meeting, small enough to need little memory.
const BUCKET: usize = 64 << 20;

/// Says of a tensor and the next one whether both are in one bucket.
fn small_pairs() -> impl FnMut(&Tensor, &Tensor) -> bool {
    let mut sum = 0;
    move |tensor, _| {
        sum += tensor.numel() * 4;
        let full = sum >= BUCKET;
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
