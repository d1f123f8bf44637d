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
/// There are no texts, none of them has an anchor, or one is longer than the target's positions.
pub fn data(texts: &[Row<'_>], rule: AnchorRule, block: usize, positions: i64) -> Verdict {
    if let Some((i, row)) = texts.iter().enumerate().find(|(_, row)| row.ids.len() as i64 > positions) {
        let tokens = row.ids.len();
        return fault(
            "data",
            format!("text {i} has {tokens} tokens, the target {positions} positions: lower data.max_length"),
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
