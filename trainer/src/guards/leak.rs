//! Guards of what a block sees: an input is changed, and the block's output must change, or must not.

use super::{Verdict, fault};
use crate::drafter::Row;
use tch::{IndexOp, Tensor};

/// A text with blocks at some anchors, and the two forward passes that training makes of it.
#[derive(Clone, Copy)]
pub struct Probe<'a> {
    /// The text, or several packed into one row.
    pub row: Row<'a>,
    /// Where blocks begin, ascending.
    pub anchors: &'a [usize],
    /// B
    pub block: usize,
    /// Token ids lie below this.
    pub vocabulary: i64,
    /// The target: token ids of the row -> taps [1, S, n·D].
    pub read: &'a dyn Fn(&[i64]) -> Tensor,
    /// The drafter: taps -> outputs of the blocks [1, N·B, D], block j at anchor j.
    pub draft: &'a dyn Fn(&Tensor) -> Tensor,
}

impl Probe<'_> {
    /// Output of block j.
    fn own(&self, y: &Tensor, j: usize) -> Tensor {
        let (first, block) = ((j * self.block) as i64, self.block as i64);
        y.i((0, first..first + block)).copy()
    }

    /// The output of block `j` for taps of which the rows in `rows` are others.
    fn without(&self, taps: &Tensor, j: usize, rows: std::ops::Range<usize>) -> Tensor {
        let changed = taps.copy();
        let part = changed.i((.., rows.start as i64..rows.end as i64));
        let other = part.neg() * 3.0 + 1.0;
        part.shallow_clone().copy_(&other);
        self.own(&(self.draft)(&changed), j)
    }

    /// The row's ids, of which those in `range` are others.
    fn other_tokens(&self, range: std::ops::Range<usize>) -> Vec<i64> {
        let mut ids = self.row.ids.to_vec();
        for id in &mut ids[range] {
            *id = (*id + 1 + self.vocabulary / 3) % self.vocabulary;
        }
        ids
    }

    fn document(&self, at: usize) -> i64 {
        self.row.documents.map_or(0, |d| d[at])
    }
}

/// The tokens after an anchor do not change what its block says: they are what it is to predict.
///
/// # Errors
/// Names the block that sees them, by way of the target or of the drafter.
pub fn future(probe: &Probe<'_>) -> Verdict {
    let base = (probe.draft)(&(probe.read)(probe.row.ids));
    for (j, &a) in probe.anchors.iter().enumerate() {
        let ids = probe.other_tokens(a + 1..probe.row.ids.len());
        let changed = (probe.draft)(&(probe.read)(&ids));
        if !probe.own(&base, j).equal(&probe.own(&changed, j)) {
            return fault("future", format!("the block at anchor {a} changes with the tokens after it"));
        }
    }
    Ok(())
}

/// An anchor's own hidden state, and those after it, do not change what its block says: at inference they do not exist yet.
///
/// # Errors
/// Names the block.
pub fn anchor_state(probe: &Probe<'_>) -> Verdict {
    let taps = (probe.read)(probe.row.ids);
    let base = (probe.draft)(&taps);
    for (j, &a) in probe.anchors.iter().enumerate() {
        for rows in [a..a + 1, a..probe.row.ids.len()] {
            if !probe.own(&base, j).equal(&probe.without(&taps, j, rows)) {
                let problem = format!("the block at anchor {a} sees the hidden state of row {a} or of a later one");
                return fault("anchor_state", problem);
            }
        }
    }
    Ok(())
}

/// The hidden state right before an anchor changes what its block says: a drafter that does not see it guesses.
///
/// # Errors
/// Names the block.
pub fn context(probe: &Probe<'_>) -> Verdict {
    let taps = (probe.read)(probe.row.ids);
    let base = (probe.draft)(&taps);
    for (j, &a) in probe.anchors.iter().enumerate() {
        let has_one = a > 0 && probe.document(a - 1) == probe.document(a);
        if has_one && probe.own(&base, j).equal(&probe.without(&taps, j, a - 1..a)) {
            return fault("context", format!("the block at anchor {a} does not see the hidden state of row {}", a - 1));
        }
    }
    Ok(())
}

/// Nothing of another document changes what a block says, by way of the target or of the drafter.
///
/// # Errors
/// Names block and document.
pub fn documents(probe: &Probe<'_>) -> Verdict {
    let Some(documents) = probe.row.documents else { return Ok(()) };
    let taps = (probe.read)(probe.row.ids);
    let base = (probe.draft)(&taps);
    for (start, end) in probe.row.documents_spans() {
        let read = (probe.draft)(&(probe.read)(&probe.other_tokens(start..end)));
        for (j, &a) in probe.anchors.iter().enumerate().filter(|&(_, &a)| documents[a] != documents[start]) {
            let own = probe.own(&base, j);
            let leaks = !own.equal(&probe.own(&read, j)) || !own.equal(&probe.without(&taps, j, start..end));
            if leaks {
                let problem = format!("the block at anchor {a} sees document {} beside its own", documents[start]);
                return fault("documents", problem);
            }
        }
    }
    Ok(())
}
