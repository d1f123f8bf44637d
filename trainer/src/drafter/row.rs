//! Sequences, and the documents in them.

use crate::device::upload;
use tch::{Device, Tensor};

/// A sequence as blocks see it: one text, or several packed into one row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a> {
    /// Token ids, without padding.
    pub ids: &'a [i64],
    /// Supervised tokens.
    pub loss_mask: &'a [bool],
    /// Packed: the document of each token; neighbours of equal id are one document, -1 is padding.
    pub documents: Option<&'a [i64]>,
    /// Packed: the position of each token in its document; `None`: counted from each document's first token.
    pub positions: Option<&'a [i64]>,
}

impl Row<'_> {
    /// Begin and end of each document, padding left out.
    pub(crate) fn documents_spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let document = |i: usize| self.documents.map_or(0, |d| d[i]);
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < self.ids.len() && document(at) < 0 {
                at += 1;
            }
            let start = at;
            while at < self.ids.len() && document(at) == document(start) {
                at += 1;
            }
            (at > start).then_some((start, at))
        })
    }

    /// How many documents there are.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.documents_spans().count()
    }

    pub(super) fn position(&self, at: usize, start: usize) -> i64 {
        self.positions.map_or((at - start) as i64, |p| p[at])
    }
}

/// Begin and end of the document that holds token `at`.
pub(super) fn holder(documents: &[(usize, usize)], at: usize) -> (usize, usize) {
    let next = documents.partition_point(|&(start, _)| start <= at);
    documents[..next].last().copied().filter(|&(_, end)| at < end).unwrap_or((at, at + 1))
}

/// Context rows that belong to several documents.
#[derive(Debug)]
pub struct Packed {
    /// [b, S] Int64; -1 = padding
    pub documents: Tensor,
    /// [b, S] Int64, counted anew in each document
    pub positions: Tensor,
    /// Begin and end of each row's documents, ascending.
    pub spans: Vec<Vec<(i64, i64)>>,
}

/// Documents and positions of all rows, if a row has several.
#[must_use]
pub fn packed(rows: &[Row<'_>], longest: usize, device: Device) -> Option<Packed> {
    rows.iter().any(|r| r.documents.is_some()).then(|| {
        let (mut documents, mut positions, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            spans.push(row.documents_spans().map(|(start, end)| (start as i64, end as i64)).collect());
            let mut own = (vec![-1; longest], vec![0; longest]);
            for (start, end) in row.documents_spans() {
                for at in start..end {
                    own.0[at] = row.documents.map_or(0, |d| d[at]);
                    own.1[at] = row.position(at, start);
                }
            }
            documents.extend(own.0);
            positions.extend(own.1);
        }
        let shape = [rows.len() as i64, longest as i64];
        let place = |values: &[i64]| upload(values, device).view(shape);
        Packed { documents: place(&documents), positions: place(&positions), spans }
    })
}
