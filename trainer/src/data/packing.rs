//! Several samples in one row of a batch, so that little of it is padding.
//!
//! A token of a packed row belongs to a document. Attention never crosses documents, and each document's positions
//! begin at 0, so that a sample trains as it would alone.

/// Puts samples of `lengths` (tokens) into rows of at most `capacity` tokens; returns each row's samples, by index.
///
/// First-fit decreasing: the longest first, each into the first row that has room, which needs at most 22 % more rows
/// than the best packing does (Johnson 1973). A sample longer than `capacity` gets a row of its own. Rows are in the
/// order of their first sample, and samples in a row in their own order, so that equal input gives equal rows.
#[must_use]
pub fn pack(lengths: &[usize], capacity: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
    let mut rooms = Rooms::default();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for sample in order {
        let length = lengths[sample];
        let row = rooms.first_with(length).unwrap_or_else(|| {
            rows.push(Vec::new());
            rooms.add(capacity.max(length))
        });
        rooms.take(row, length);
        rows[row].push(sample);
    }
    rows.iter_mut().for_each(|row| row.sort_unstable());
    rows.sort_unstable();
    rows
}

/// How much room each row has, as a tree of maxima: finding the first that fits takes log(rows) steps, not rows.
#[derive(Default)]
struct Rooms {
    rows: usize,
    leaves: usize,
    /// A binary heap's layout: node i has the children 2i and 2i + 1, the leaves are the last half.
    tree: Vec<usize>,
}

impl Rooms {
    /// The first row with room for `length`.
    fn first_with(&self, length: usize) -> Option<usize> {
        if self.rows == 0 || self.tree[1] < length {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.tree[node] < length {
                node += 1;
            }
        }
        // A sample without tokens fits into leaves that are no rows yet.
        Some(node - self.leaves).filter(|&row| row < self.rows)
    }

    fn add(&mut self, room: usize) -> usize {
        if self.rows == self.leaves {
            let kept: Vec<usize> = self.tree.iter().skip(self.leaves).copied().collect();
            self.leaves = (self.leaves * 2).max(1);
            self.tree = vec![0; self.leaves * 2];
            kept.into_iter().enumerate().for_each(|(row, room)| self.set(row, room));
        }
        self.rows += 1;
        self.set(self.rows - 1, room);
        self.rows - 1
    }

    fn take(&mut self, row: usize, length: usize) {
        self.set(row, self.tree[self.leaves + row] - length);
    }

    fn set(&mut self, row: usize, room: usize) {
        let mut node = self.leaves + row;
        self.tree[node] = room;
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[node * 2].max(self.tree[node * 2 + 1]);
        }
    }
}

/// Document ids of a row's `total` tokens: 0 for the first document's tokens, 1 for the second's, …, -1 for padding.
///
/// Written run by run; [`document_ids_reference`] finds the same ids token by token.
#[must_use]
pub fn document_ids(lengths: &[usize], total: usize) -> Vec<i64> {
    let mut ids = Vec::with_capacity(total);
    for (document, &length) in (0..).zip(lengths) {
        ids.resize(ids.len() + length, document);
    }
    ids.resize(total, -1);
    ids
}

/// As [`document_ids`], by looking for each token's document from the row's beginning: quadratic in the documents, and
/// what a fast path must equal.
#[must_use]
pub fn document_ids_reference(lengths: &[usize], total: usize) -> Vec<i64> {
    let document = |token: usize| {
        let mut end = 0;
        let found = lengths.iter().position(|&length| {
            end += length;
            token < end
        });
        found.map_or(-1, |document| document as i64)
    };
    (0..total).map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First-fit decreasing as its definition says it, row by row.
    fn plain(lengths: &[usize], capacity: usize) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        let mut rows: Vec<(usize, Vec<usize>)> = Vec::new();
        for i in order {
            match rows.iter_mut().find(|(room, _)| *room >= lengths[i]) {
                Some((room, row)) => {
                    *room -= lengths[i];
                    row.push(i);
                }
                None => rows.push((capacity.max(lengths[i]) - lengths[i], vec![i])),
            }
        }
        let mut rows: Vec<Vec<usize>> = rows.into_iter().map(|(_, row)| row).collect();
        rows.iter_mut().for_each(|row| row.sort_unstable());
        rows.sort_unstable();
        rows
    }

    #[test]
    fn rows_are_filled() {
        assert_eq!(pack(&[3, 7, 5, 5, 10], 10), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(pack(&[12, 1], 10), [vec![0], vec![1]]);
        assert_eq!(pack(&[], 10), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn ids_of_a_row() {
        assert_eq!(document_ids(&[2, 3], 7), [0, 0, 1, 1, 1, -1, -1]);
    }

    proptest! {
        #[test]
        fn packing_is_first_fit_decreasing(lengths in prop::collection::vec(0usize..40, 0..60), capacity in 1usize..50) {
            let rows = pack(&lengths, capacity);
            prop_assert_eq!(&rows, &plain(&lengths, capacity));
            let mut all: Vec<usize> = rows.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
            for row in rows {
                let tokens: usize = row.iter().map(|&i| lengths[i]).sum();
                prop_assert!(tokens <= capacity || row.iter().filter(|&&i| lengths[i] > 0).count() == 1);
            }
        }

        #[test]
        fn fast_ids_equal_the_reference(lengths in prop::collection::vec(0usize..9, 0..12), padding in 0usize..9) {
            let total = lengths.iter().sum::<usize>() + padding;
            prop_assert_eq!(document_ids(&lengths, total), document_ids_reference(&lengths, total));
        }
    }
}
