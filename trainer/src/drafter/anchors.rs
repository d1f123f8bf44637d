//! Where blocks begin in training, and what they should predict.

use rand::Rng;
use rand::seq::index;
use tch::{Device, Kind, Tensor};

/// Positions that may be an anchor: supervised, and followed by a supervised token (SpecForge's rule).
#[must_use]
pub fn valid(loss_mask: &[bool]) -> Vec<usize> {
    (0..loss_mask.len().saturating_sub(1)).filter(|&a| loss_mask[a] && loss_mask[a + 1]).collect()
}

/// Draws up to `count` valid anchors without replacement, ascending.
#[must_use]
pub fn draw(loss_mask: &[bool], count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let valid = valid(loss_mask);
    let mut drawn: Vec<_> =
        index::sample(rng, valid.len(), count.min(valid.len())).into_iter().map(|i| valid[i]).collect();
    drawn.sort_unstable();
    drawn
}

/// The blocks of a batch, always N a sequence: those that could not be drawn are not kept.
#[derive(Debug)]
pub struct Blocks {
    /// [b, N] Int64; 0 where not kept
    pub anchors: Tensor,
    /// [b, N] Bool
    pub keep: Tensor,
    /// [b, N·B] Int64: the anchor's token, then mask tokens
    pub ids: Tensor,
    /// [b, N·B] Int64
    pub positions: Tensor,
    /// Supervised slots.
    pub slots: Slots,
}

/// The slots that the loss looks at, flat, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Index into [b · N · B].
    pub index: Vec<i64>,
    /// The token that the slot should predict.
    pub label: Vec<i64>,
    /// Position in the block, 1..B.
    pub slot: Vec<i64>,
}

/// A sequence as anchors see it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Token ids, without padding.
    pub ids: &'a [i64],
    /// Supervised tokens.
    pub loss_mask: &'a [bool],
}

/// Lays out the blocks at the drawn anchors (one ascending list a row).
#[must_use]
pub fn layout(rows: &[Row<'_>], drawn: &[Vec<usize>], n: usize, block: usize, mask_id: i64, device: Device) -> Blocks {
    let (mut anchors, mut keep, mut ids, mut positions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut slots = Slots::default();
    for (r, (row, drawn)) in rows.iter().zip(drawn).enumerate() {
        for j in 0..n {
            let anchor = drawn.get(j).copied();
            let at = anchor.unwrap_or(0);
            anchors.push(at as i64);
            keep.push(anchor.is_some());
            ids.push(if anchor.is_some() { row.ids[at] } else { mask_id });
            ids.extend(std::iter::repeat_n(mask_id, block - 1));
            positions.extend((at..at + block).map(|p| p as i64));
            if anchor.is_some() {
                slots.push_block(row, at, block, ((r * n + j) * block) as i64);
            }
        }
    }
    let (b, n) = (rows.len() as i64, n as i64);
    let place = |values: &[i64], width: i64| Tensor::from_slice(values).view([b, width]).to_device(device);
    Blocks {
        anchors: place(&anchors, n),
        keep: Tensor::from_slice(&keep).view([b, n]).to_device(device),
        ids: place(&ids, n * block as i64),
        positions: place(&positions, n * block as i64),
        slots,
    }
}

impl Slots {
    /// Slot k predicts token anchor + k, k = 1..B, where that token exists and is supervised.
    fn push_block(&mut self, row: &Row<'_>, anchor: usize, block: usize, first: i64) {
        for k in 1..block.min(row.ids.len() - anchor) {
            if row.loss_mask[anchor + k] {
                self.index.push(first + k as i64);
                self.label.push(row.ids[anchor + k]);
                self.slot.push(k as i64);
            }
        }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// None.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// A list as a tensor on `device`.
    pub fn tensor(list: &[i64], device: Device) -> Tensor {
        Tensor::from_slice(list).to_kind(Kind::Int64).to_device(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn anchors_are_valid_distinct_and_ascending() {
        let mask: Vec<bool> = (0..50).map(|i| i % 7 != 0 && i > 5).collect();
        let drawn = draw(&mask, 10, &mut StdRng::seed_from_u64(1));
        assert_eq!(drawn.len(), 10);
        assert!(drawn.windows(2).all(|w| w[0] < w[1]));
        assert!(drawn.iter().all(|&a| mask[a] && mask[a + 1]));
        assert_eq!(draw(&mask, 1000, &mut StdRng::seed_from_u64(1)), valid(&mask));
    }

    #[test]
    fn blocks_stop_at_the_end_of_the_sequence_and_at_unsupervised_tokens() {
        let row = Row { ids: &[10, 11, 12, 13, 14, 15], loss_mask: &[false, true, true, false, true, true] };
        let blocks = layout(&[row], &[vec![1, 4]], 3, 4, 99, Device::Cpu);
        assert_eq!(
            Vec::<i64>::try_from(blocks.ids.view([-1])).unwrap(),
            [11, 99, 99, 99, 14, 99, 99, 99, 99, 99, 99, 99]
        );
        assert_eq!(blocks.slots, Slots { index: vec![1, 3, 5], label: vec![12, 14, 15], slot: vec![1, 3, 1] });
        assert_eq!(Vec::<bool>::try_from(blocks.keep.view([-1])).unwrap(), [true, true, false]);
    }
}
