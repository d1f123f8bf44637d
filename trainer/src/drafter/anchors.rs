//! Where blocks begin in training: which positions may be an anchor, and the draw among them.

use super::row::Row;
use crate::config::AnchorRule;
use rand::Rng;
use rand::seq::index;

/// Positions of a row that may be an anchor, ascending. A rule looks at one document at a time: nothing that it asks of an
/// anchor's neighbours may lie in another.
#[must_use]
pub fn valid(row: &Row<'_>, rule: AnchorRule, block: usize) -> Vec<usize> {
    row.documents_spans()
        .flat_map(|(start, end)| (start..end).filter(move |&a| may_begin(row, a, end, rule, block)))
        .collect()
}

/// Whether position `a` of a document that ends before `end` may be an anchor.
fn may_begin(row: &Row<'_>, a: usize, end: usize, rule: AnchorRule, block: usize) -> bool {
    row.loss_mask[a]
        && match rule {
            AnchorRule::TwoSupervised => a + 1 < end && row.loss_mask[a + 1],
            AnchorRule::WholeBlock => a + block <= end,
            AnchorRule::BeforeLastBlock => a + block < end,
        }
}

/// Draws up to `count` of the valid anchors without replacement, ascending.
#[must_use]
pub fn draw(valid: &[usize], count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut drawn: Vec<_> =
        index::sample(rng, valid.len(), count.min(valid.len())).into_iter().map(|i| valid[i]).collect();
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn anchors_are_valid_distinct_and_ascending() {
        let mask: Vec<bool> = (0..50).map(|i| i % 7 != 0 && i > 5).collect();
        let row = Row { ids: &[0; 50], loss_mask: &mask, ..Row::default() };
        let all = valid(&row, AnchorRule::TwoSupervised, 8);
        let drawn = draw(&all, 10, &mut StdRng::seed_from_u64(1));
        assert_eq!(drawn.len(), 10);
        assert!(drawn.windows(2).all(|w| w[0] < w[1]));
        assert!(drawn.iter().all(|&a| mask[a] && mask[a + 1]));
        assert_eq!(draw(&all, 1000, &mut StdRng::seed_from_u64(1)), all);
    }

    #[test]
    fn no_rule_looks_over_the_end_of_a_document() {
        let documents = [0, 0, 0, 0, 1, 1, 1, -1];
        let row = Row { ids: &[0; 8], loss_mask: &[true; 8], documents: Some(&documents), positions: None };
        assert_eq!(valid(&row, AnchorRule::TwoSupervised, 3), [0, 1, 2, 4, 5]);
        assert_eq!(valid(&row, AnchorRule::WholeBlock, 3), [0, 1, 4]);
        assert_eq!(valid(&row, AnchorRule::BeforeLastBlock, 3), [0]);
    }
}
