//! The candidate vocabulary: which rows of the head the training loss looks at.
//!
//! The full head costs most of a small drafter's step on a CPU. Ids that occur in the training texts, the low ids (the
//! commonest in a byte-pair vocabulary) and fresh random others stand for the rest. Drafting always uses the full head.

use crate::device::place;
use crate::loss::HeadRows;
use rand::Rng;
use std::sync::Arc;
use tch::{Kind, Tensor};

/// Draws the candidates of each step.
#[derive(Debug)]
pub struct Candidates {
    base: Vec<i64>,
    row_of: Arc<[i64]>,
    others: Vec<i64>,
    random: usize,
}

impl Candidates {
    /// Candidates for texts that hold `ids`, of a vocabulary of `vocab` tokens; ids below `low` are always among them.
    #[must_use]
    pub fn new(vocab: i64, low: i64, ids: impl IntoIterator<Item = i64>, random: usize) -> Self {
        let mut row_of = vec![-1; vocab as usize];
        for id in (0..low.min(vocab)).chain(ids) {
            row_of[id as usize] = 0;
        }
        let (base, others): (Vec<i64>, Vec<i64>) = (0..vocab).partition(|&id| row_of[id as usize] == 0);
        for (row, &id) in base.iter().enumerate() {
            row_of[id as usize] = row as i64;
        }
        let random = random.min(others.len());
        Self { base, row_of: row_of.into(), others, random }
    }

    /// How many rows a step's head has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.base.len() + self.random
    }

    /// The head's rows for one step.
    #[must_use]
    pub fn draw(&self, head: &Tensor, rng: &mut impl Rng) -> HeadRows {
        let drawn = rand::seq::index::sample(rng, self.others.len(), self.random);
        let ids: Vec<i64> = self.base.iter().copied().chain(drawn.iter().map(|i| self.others[i])).collect();
        let ids = place(&Tensor::from_slice(&ids).to_kind(Kind::Int64), head.device());
        HeadRows { weight: head.index_select(0, &ids), row_of: Some(Arc::clone(&self.row_of)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use tch::Device;

    #[test]
    fn every_text_id_has_its_row_and_others_are_fresh() {
        let c = Candidates::new(100, 3, [50, 7, 7], 10);
        let head = Tensor::arange(100, (Kind::Float, Device::Cpu)).view([100, 1]);
        let drawn = c.draw(&head, &mut rand::rngs::StdRng::seed_from_u64(0));
        let rows = Vec::<f32>::try_from(drawn.weight.view([-1])).unwrap();
        assert_eq!(rows.len(), c.rows());
        assert_eq!(rows[..5], [0.0, 1.0, 2.0, 7.0, 50.0]);
        let row_of = drawn.row_of.unwrap();
        assert_eq!((row_of[7], row_of[50], row_of[60]), (3, 4, -1));
        assert!(rows[5..].iter().all(|&id| ![0.0, 1.0, 2.0, 7.0, 50.0].contains(&id)));
    }
}
