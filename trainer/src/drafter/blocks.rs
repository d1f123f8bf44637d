//! The blocks of a batch: their tokens, their positions, and what they should predict.

use super::row::{Packed, Row, holder, packed};
use crate::device::upload;
use tch::{Device, Kind, Tensor};

/// Where a block may look, known to the host: it saves looking elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// First token of the anchor's document.
    pub(super) start: i64,
    /// The anchor.
    pub(super) anchor: i64,
}

/// The blocks of a batch: N a sequence; those that could not be drawn are not kept.
#[derive(Debug)]
pub struct Blocks {
    /// [b, N] Int64; 0 where not kept
    pub anchors: Tensor,
    /// [b, N] Bool
    pub keep: Tensor,
    /// [b, N·B] Int64: the anchor's token, then mask tokens
    pub ids: Tensor,
    /// [b, N·B] Int64: position of the anchor in its document, and on from there
    pub positions: Tensor,
    /// Supervised slots.
    pub slots: Slots,
    /// Documents of the context rows; `None`: each sequence is one.
    pub packed: Option<Packed>,
    /// b · N, `None` where not kept.
    pub(super) reach: Vec<Option<Reach>>,
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
    /// Index into [b · S] of the token before the label: there the target predicts the same token.
    pub teacher: Vec<i64>,
}

/// How blocks are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// N: blocks a sequence.
    pub count: usize,
    /// B: tokens of a block.
    pub block: usize,
    /// Stands for "to be predicted".
    pub mask_id: i64,
    /// Where the tensors go.
    pub device: Device,
}

/// Lays out the blocks at the drawn anchors (one ascending list a row).
#[must_use]
pub fn layout(rows: &[Row<'_>], drawn: &[Vec<usize>], how: &Layout) -> Blocks {
    let Layout { count: n, block, mask_id, device } = *how;
    let longest = rows.iter().map(|r| r.ids.len()).max().unwrap_or(0);
    let (mut anchors, mut keep, mut ids, mut positions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut slots, mut reach) = (Slots::default(), Vec::new());
    for (r, (row, drawn)) in rows.iter().zip(drawn).enumerate() {
        let documents: Vec<_> = row.documents_spans().collect();
        for j in 0..n {
            let anchor = drawn.get(j).copied();
            let at = anchor.unwrap_or(0);
            let (start, end) = holder(&documents, at);
            anchors.push(at as i64);
            keep.push(anchor.is_some());
            ids.push(if anchor.is_some() { row.ids[at] } else { mask_id });
            ids.extend(std::iter::repeat_n(mask_id, block - 1));
            let position = if anchor.is_some() { row.position(at, start) } else { 0 };
            positions.extend(position..position + block as i64);
            reach.push(anchor.map(|_| Reach { start: start as i64, anchor: at as i64 }));
            if anchor.is_some() {
                slots.push_block(row, at, block.min(end - at), ((r * n + j) * block) as i64, r * longest);
            }
        }
    }
    let (b, n) = (rows.len() as i64, n as i64);
    let place = |values: &[i64], width: i64| upload(values, device).view([b, width]);
    Blocks {
        anchors: place(&anchors, n),
        keep: upload(&keep, device).view([b, n]),
        ids: place(&ids, n * block as i64),
        positions: place(&positions, n * block as i64),
        slots,
        packed: packed(rows, longest, device),
        reach,
    }
}

impl Blocks {
    /// Positions of the context's rows: `[rows]`, or [b, rows] where documents are packed.
    pub fn context_positions(&self, rows: i64) -> Tensor {
        match &self.packed {
            Some(packed) => packed.positions.narrow(1, 0, rows),
            None => Tensor::arange(rows, (Kind::Int64, self.anchors.device())),
        }
    }
}

impl Slots {
    /// Slot k predicts token anchor + k, 1 ≤ k < `end`, where that token is supervised. `first`: index of the block's slot
    /// 0; `row`: index of the row's first token.
    fn push_block(&mut self, row: &Row<'_>, anchor: usize, end: usize, first: i64, from: usize) {
        for k in 1..end {
            if row.loss_mask[anchor + k] {
                self.index.push(first + k as i64);
                self.label.push(row.ids[anchor + k]);
                self.slot.push(k as i64);
                self.teacher.push((from + anchor + k - 1) as i64);
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

    /// How many there are of each slot 0..`block`.
    #[must_use]
    pub fn totals(&self, block: usize) -> Vec<u64> {
        let mut totals = vec![0; block];
        for &slot in &self.slot {
            totals[slot as usize] += 1;
        }
        totals
    }

    /// Blocks with a supervised slot.
    #[must_use]
    pub fn blocks(&self, block: i64) -> u64 {
        let mut blocks: Vec<i64> = self.index.iter().map(|i| i / block).collect();
        blocks.dedup();
        blocks.len() as u64
    }

    /// A list as a tensor on `device`.
    pub fn tensor(list: &[i64], device: Device) -> Tensor {
        upload(list, device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Device = Device::Cpu;

    #[test]
    fn blocks_stop_at_the_end_of_the_sequence_and_at_unsupervised_tokens() {
        let mask = [false, true, true, false, true, true];
        let row = Row { ids: &[10, 11, 12, 13, 14, 15], loss_mask: &mask, ..Row::default() };
        let how = Layout { count: 3, block: 4, mask_id: 99, device: CPU };
        let blocks = layout(&[row], &[vec![1, 4]], &how);
        assert_eq!(
            Vec::<i64>::try_from(blocks.ids.view([-1])).unwrap(),
            [11, 99, 99, 99, 14, 99, 99, 99, 99, 99, 99, 99]
        );
        let want = Slots { index: vec![1, 3, 5], label: vec![12, 14, 15], slot: vec![1, 3, 1], teacher: vec![1, 3, 4] };
        assert_eq!(blocks.slots, want);
        assert_eq!((want.totals(4), want.blocks(4)), (vec![0, 2, 0, 1], 2));
        assert_eq!(Vec::<bool>::try_from(blocks.keep.view([-1])).unwrap(), [true, true, false]);
    }

    #[test]
    fn blocks_stop_at_the_end_of_their_document_and_count_from_its_beginning() {
        let documents = [0, 0, 0, 1, 1, 1, -1];
        let row =
            Row { ids: &[1, 2, 3, 4, 5, 6, 0], loss_mask: &[true; 7], documents: Some(&documents), positions: None };
        let how = Layout { count: 2, block: 4, mask_id: 99, device: CPU };
        let blocks = layout(&[row], &[vec![1, 4]], &how);
        assert_eq!((blocks.slots.label, blocks.slots.index), (vec![3, 6], vec![1, 5]));
        assert_eq!(Vec::<i64>::try_from(blocks.positions.view([-1])).unwrap(), [1, 2, 3, 4, 1, 2, 3, 4]);
        let packed = blocks.packed.unwrap();
        assert_eq!(Vec::<i64>::try_from(packed.positions.view([-1])).unwrap(), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(blocks.reach[1], Some(Reach { start: 3, anchor: 4 }));
    }
}
