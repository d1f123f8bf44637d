//! Stretches of time, and how much of another stretch they cover together.

/// Stretches `(begin, end)`, sorted, of which no two touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Union {
    pieces: Vec<(i64, i64)>,
    /// Length of all pieces before each, and of all.
    before: Vec<u64>,
}

impl Union {
    /// The union of stretches in any order; those that are empty or end before they begin count for nothing.
    pub(crate) fn of(mut stretches: Vec<(i64, i64)>) -> Self {
        stretches.retain(|(begin, end)| begin < end);
        stretches.sort_unstable();
        let mut pieces: Vec<(i64, i64)> = Vec::new();
        for (begin, end) in stretches {
            match pieces.last_mut() {
                Some((_, last)) if begin <= *last => *last = end.max(*last),
                _ => pieces.push((begin, end)),
            }
        }
        let mut before = Vec::with_capacity(pieces.len() + 1);
        let mut sum = 0;
        before.push(0);
        for (begin, end) in &pieces {
            sum = end.abs_diff(*begin).saturating_add(sum);
            before.push(sum);
        }
        Self { pieces, before }
    }

    /// Length of all of it, nanoseconds.
    pub(crate) fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// First begin and last end.
    pub(crate) fn extent(&self) -> Option<(i64, i64)> {
        Some((self.pieces.first()?.0, self.pieces.last()?.1))
    }

    /// How much of `begin..end` it covers, nanoseconds.
    pub(crate) fn covered(&self, (begin, end): (i64, i64)) -> u64 {
        if begin < end { self.up_to(end) - self.up_to(begin) } else { 0 }
    }

    /// Length of what lies before a moment.
    fn up_to(&self, moment: i64) -> u64 {
        let whole = self.pieces.partition_point(|(_, end)| *end <= moment);
        let part = self.pieces.get(whole).filter(|(begin, _)| *begin < moment);
        self.before[whole] + part.map_or(0, |(begin, _)| moment.abs_diff(*begin))
    }

    /// How much of `begin..end` lies in both.
    pub(crate) fn covered_by_both(&self, other: &Self, (begin, end): (i64, i64)) -> u64 {
        let first = self.pieces.partition_point(|(_, last)| *last <= begin);
        let inside = self.pieces[first..].iter().take_while(|(start, _)| *start < end);
        inside.map(|&(start, last)| other.covered((start.max(begin), last.min(end)))).sum()
    }
}

/// Asks a union about one stretch after the other, which is cheapest if they come in order.
#[derive(Debug)]
pub(crate) struct Along<'a> {
    pieces: &'a [(i64, i64)],
    /// The first piece that ends behind the begin of the last stretch.
    at: usize,
    begin: i64,
}

impl<'a> Along<'a> {
    pub(crate) fn new(union: &'a Union) -> Self {
        Self { pieces: &union.pieces, at: 0, begin: i64::MIN }
    }

    /// How much of `begin..end` the union covers, nanoseconds.
    pub(crate) fn covered(&mut self, (begin, end): (i64, i64)) -> u64 {
        if begin < self.begin {
            self.at = 0;
        }
        self.begin = begin;
        let passed = self.pieces[self.at..].iter().take_while(|(_, last)| *last <= begin).count();
        self.at += passed;
        let inside = self.pieces[self.at..].iter().take_while(|(first, _)| *first < end);
        inside.map(|&(first, last)| last.min(end).abs_diff(first.max(begin))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Along, Union};
    use proptest::prelude::*;

    /// Whether each of the first 60 nanoseconds is covered, by asking every stretch about every one.
    fn covered(stretches: &[(i64, i64)]) -> Vec<bool> {
        (0..60).map(|at| stretches.iter().any(|(begin, end)| (*begin..*end).contains(&at))).collect()
    }

    fn count(covered: &[bool], begin: i64, end: i64) -> u64 {
        (begin..end).filter(|at| covered[*at as usize]).count() as u64
    }

    proptest! {
        #[test]
        fn agrees_with_brute_force(
            a in prop::collection::vec((0_i64..60, 0_i64..60), 0..12),
            b in prop::collection::vec((0_i64..60, 0_i64..60), 0..12),
            begin in 0_i64..60,
            end in 0_i64..60,
        ) {
            let (union_a, union_b) = (Union::of(a.clone()), Union::of(b.clone()));
            let (in_a, in_b) = (covered(&a), covered(&b));
            let both: Vec<bool> = in_a.iter().zip(&in_b).map(|(a, b)| *a && *b).collect();
            prop_assert_eq!(union_a.total(), count(&in_a, 0, 60));
            prop_assert_eq!(union_a.covered((begin, end)), count(&in_a, begin, end));
            let mut along = Along::new(&union_a);
            for (begin, end) in b.iter().chain(&a).filter(|(begin, end)| begin < end) {
                prop_assert_eq!(along.covered((*begin, *end)), count(&in_a, *begin, *end));
            }
            prop_assert_eq!(union_a.covered_by_both(&union_b, (begin, end)), count(&both, begin, end));
            let first = in_a.iter().position(|covered| *covered);
            let last = in_a.iter().rposition(|covered| *covered);
            let extent = first.zip(last).map(|(first, last)| (first as i64, last as i64 + 1));
            prop_assert_eq!(union_a.extent(), extent);
        }
    }
}
