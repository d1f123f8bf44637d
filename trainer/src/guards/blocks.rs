//! Guards that look at numbers alone: the mask token and the data's lengths.

use super::{Verdict, fault};
use crate::config::AnchorRule;
use crate::drafter::{Row, anchors};

/// The mask token is a row of the embedding, and no text contains it: a token that the target has learnt to read means
/// something, and where a text has it, a drafter cannot tell it from "to be predicted".
///
/// # Errors
/// The id is out of range, or a text has it.
pub fn mask_id(id: i64, vocabulary: i64, mut texts: impl Iterator<Item = i64>) -> Verdict {
    if !(0..vocabulary).contains(&id) {
        return fault("mask_id", format!("mask_token_id {id} lies outside the vocabulary 0..{vocabulary}"));
    }
    if texts.any(|token| token == id) {
        return fault(
            "mask_id",
            format!(
                "the training texts contain token {id}: choose a mask_token_id that no text has, an unused special token"
            ),
        );
    }
    Ok(())
}

/// Blocks fit into the texts, and texts into the target.
///
/// # Errors
/// There are no texts, none of them has an anchor, or one reaches beyond the target's positions.
pub fn data(texts: &[Row<'_>], rule: AnchorRule, block: usize, positions: i64) -> Verdict {
    let reach = |row: &Row<'_>| reach(row, &anchors::valid(row, rule, block), block) as i64;
    if let Some((i, needed)) = texts.iter().map(reach).enumerate().find(|&(_, needed)| needed > positions) {
        return fault(
            "data",
            format!(
                "text {i} and the block at its last anchor need {needed} positions, the target has {positions}: lower \
                 data.max_length"
            ),
        );
    }
    if texts.iter().all(|row| anchors::valid(row, rule, block).is_empty()) {
        return fault(
            "data",
            format!(
                "no text has an anchor for blocks of {block} tokens: supervised tokens are missing or stand alone; look at \
                 the chat template, or lower drafter.block_size"
            ),
        );
    }
    Ok(())
}

/// Positions that a row's longest document needs, and the blocks at its `anchors`: positions begin anew in each document.
fn reach(row: &Row<'_>, anchors: &[usize], block: usize) -> usize {
    let documents: Vec<_> = row.documents_spans().collect();
    let text = documents.iter().map(|(start, end)| end - start).max().unwrap_or(0);
    let of_block = |&anchor: &usize| {
        let next = documents.partition_point(|&(start, _)| start <= anchor);
        documents[..next].last().map_or(0, |(start, _)| anchor - start + block)
    };
    anchors.iter().map(of_block).max().unwrap_or(0).max(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_may_need_more_positions_than_its_text_and_a_packed_row_fewer() {
        let (ids, mask, documents) = ([7; 8], [true; 8], [0, 0, 0, 0, 0, 1, 1, 1]);
        let row = Row { ids: &ids, loss_mask: &mask, ..Row::default() };
        let packed = Row { documents: Some(&documents), ..row };
        // The last anchor is the token before the last.
        assert_eq!(reach(&row, &[0, 6], 4), 10);
        assert_eq!(reach(&packed, &[3, 6], 4), 7);
        let needs = |row: Row<'_>, positions| data(&[row], AnchorRule::TwoSupervised, 4, positions);
        assert!(needs(row, 10).is_ok() && needs(row, 9).is_err());
        assert!(needs(packed, 7).is_ok() && needs(packed, 6).is_err());
    }
}
