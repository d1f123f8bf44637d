//! Slices on tracks: a viewer wants them nested, and shows what overlaps otherwise without a word in a wrong place.
//!
//! What does not fit into the slice that is open goes to the next *slot*, a track of its own. Ends come before begins of
//! the same moment, inner ends before outer ones. Items may come piece by piece; what is open goes on into the next piece.

use super::counts::Counts;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Slots of one track. What overlaps more often is left out, and counted.
const SLOTS: usize = 64;
/// Nothing lasts longer; clocks and tracers are known to have made durations of centuries.
const LONGEST_NS: u64 = 7 * 86_400_000_000_000;

/// A slice, or an instant, for a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<T> {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub what: T,
}

impl<T> Item<T> {
    /// `None`, and counted, if it cannot be: it begins before time did, or lasts longer than a week.
    pub(super) fn new(begin_ns: i64, duration_ns: u64, what: T, counts: &mut Counts) -> Option<Self> {
        let end_ns = begin_ns.checked_add_unsigned(duration_ns);
        match end_ns.filter(|_| begin_ns >= 0 && duration_ns <= LONGEST_NS) {
            Some(end_ns) => Some(Self { begin_ns, end_ns, what }),
            None => {
                counts.implausible += 1;
                None
            }
        }
    }
}

/// What happens on a track at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Begin,
    End,
    Instant,
}

/// A step along a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<T> {
    pub time_ns: i64,
    pub slot: usize,
    pub edge: Edge,
    /// The item; of an end, the one that ends.
    pub item: Item<T>,
}

/// How the slices of a track may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// One within the other: what a thread does.
    Nested,
    /// One after the other: things that have nothing to do with each other.
    Apart,
}

/// Goes along the items of a track in the order of time.
pub(super) struct Track<T> {
    items: VecDeque<Item<T>>,
    fit: Fit,
    order: fn(&T) -> u8,
    is_instant: fn(&T) -> bool,
    /// What is open on each slot, the innermost last.
    open: Vec<Vec<Item<T>>>,
    /// When the last step on each slot was: what comes late cannot stand before it.
    reached: Vec<i64>,
    /// Steps before this moment may be taken; all, if it is `None`.
    until_ns: Option<i64>,
    /// Items that found no slot.
    pub overlapping: u64,
}

impl<T: Copy> Track<T> {
    /// `order`: which of two that begin and end together is the outer one, the lesser first.
    pub(super) fn new(fit: Fit, order: fn(&T) -> u8, is_instant: fn(&T) -> bool) -> Self {
        let (items, open, reached) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { items, fit, order, is_instant, open, reached, until_ns: None, overlapping: 0 }
    }

    /// Adds items. Others may still come that begin at `until_ns` or later; none, if it is `None`.
    pub(super) fn add(&mut self, items: impl IntoIterator<Item = Item<T>>, until_ns: Option<i64>) {
        self.items.extend(items);
        let order = self.order;
        let key = |item: &Item<T>| (item.begin_ns, Reverse(item.end_ns), order(&item.what));
        self.items.make_contiguous().sort_by_key(key);
        self.until_ns = until_ns;
    }

    /// When the next step is; `None` if there is none, or something may still come before it.
    pub(super) fn next_time(&self) -> Option<i64> {
        let begin = self.items.front().map(|item| item.begin_ns);
        let end = self.next_end().map(|(_, end)| end);
        begin.into_iter().chain(end).min().filter(|time| self.until_ns.is_none_or(|until| *time < until))
    }

    /// The slot whose innermost slice ends first, and when.
    fn next_end(&self) -> Option<(usize, i64)> {
        let tops = self.open.iter().enumerate().filter_map(|(slot, open)| Some((slot, open.last()?.end_ns)));
        tops.min_by_key(|(slot, end)| (*end, *slot))
    }

    fn slot_for(&mut self, item: &Item<T>) -> Option<usize> {
        let fits = |(open, reached): (&Vec<Item<T>>, &i64)| match open.last() {
            _ if *reached > item.begin_ns => false,
            None => true,
            Some(around) => self.fit == Fit::Nested && around.end_ns >= item.end_ns,
        };
        if let Some(slot) = self.open.iter().zip(&self.reached).position(fits) {
            return Some(slot);
        }
        (self.open.len() < SLOTS).then(|| {
            self.open.push(Vec::new());
            self.reached.push(i64::MIN);
            self.open.len() - 1
        })
    }
}

impl<T: Copy> Iterator for Track<T> {
    type Item = Step<T>;

    fn next(&mut self) -> Option<Step<T>> {
        loop {
            self.next_time()?;
            let begin_ns = self.items.front().map(|item| item.begin_ns);
            if let Some((slot, end_ns)) = self.next_end()
                && begin_ns.is_none_or(|begin| end_ns <= begin)
            {
                let item = self.open[slot].pop()?;
                self.reached[slot] = end_ns;
                return Some(Step { time_ns: end_ns, slot, edge: Edge::End, item });
            }
            let item = self.items.pop_front()?;
            if (self.is_instant)(&item.what) {
                return Some(Step { time_ns: item.begin_ns, slot: 0, edge: Edge::Instant, item });
            }
            match self.slot_for(&item) {
                Some(slot) => {
                    self.open[slot].push(item);
                    self.reached[slot] = item.begin_ns;
                    return Some(Step { time_ns: item.begin_ns, slot, edge: Edge::Begin, item });
                }
                None => self.overlapping += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Edge, Fit, Item, Track};
    use proptest::prelude::*;

    fn steps(stretches: &[(i64, i64)], fit: Fit) -> Vec<String> {
        let items = stretches.iter().enumerate();
        let items = items.map(|(what, (begin_ns, end_ns))| Item { begin_ns: *begin_ns, end_ns: *end_ns, what });
        let mut track = Track::new(fit, |_| 0, |_| false);
        track.add(items, None);
        track.map(|step| format!("{}{:?}{}@{}", step.time_ns, step.edge, step.item.what, step.slot)).collect()
    }

    #[test]
    fn what_nests_shares_a_slot_and_what_overlaps_does_not() {
        let nested = ["0Begin0@0", "2Begin1@0", "5End1@0", "9End0@0", "9Begin2@0", "12End2@0"];
        assert_eq!(steps(&[(0, 9), (2, 5), (9, 12)], Fit::Nested), nested);
        let overlapping = ["0Begin0@0", "5Begin1@1", "9End0@0", "12End1@1"];
        assert_eq!(steps(&[(0, 9), (5, 12)], Fit::Nested), overlapping);
        assert_eq!(steps(&[(0, 9), (2, 5)], Fit::Apart), ["0Begin0@0", "2Begin1@1", "5End1@1", "9End0@0"]);
        assert_eq!(steps(&[(3, 3), (3, 3)], Fit::Nested), ["3Begin0@0", "3End0@0", "3Begin1@0", "3End1@0"]);
    }

    proptest! {
        #[test]
        fn every_slot_is_well_nested(stretches in prop::collection::vec((0_i64..40, 0_i64..10), 0..40), apart: bool) {
            let items = stretches.iter().map(|(begin, length)| Item { begin_ns: *begin, end_ns: begin + length, what: () });
            let fit = if apart { Fit::Apart } else { Fit::Nested };
            let mut track = Track::new(fit, |()| 0, |()| false);
            track.add(items, None);
            let (mut open, mut now, mut ended): (Vec<Vec<i64>>, _, _) = (vec![Vec::new(); 64], 0, 0);
            while let Some(time) = track.next_time() {
                let step = track.next().unwrap();
                prop_assert!(step.time_ns == time && time >= now);
                now = time;
                if step.edge == Edge::Begin {
                    prop_assert!(open[step.slot].last().is_none_or(|end| !apart && *end >= step.item.end_ns));
                    open[step.slot].push(step.item.end_ns);
                } else {
                    prop_assert_eq!(open[step.slot].pop(), Some(now));
                    ended += 1;
                }
            }
            prop_assert_eq!(ended + track.overlapping as usize, stretches.len());
        }

        /// However the items are cut into pieces, the steps are the same.
        #[test]
        fn pieces_are_as_good_as_the_whole(
            stretches in prop::collection::vec((0_i64..40, 0_i64..10), 0..40),
            cuts in prop::collection::vec(0_i64..45, 0..4),
        ) {
            let all = || stretches.iter().zip(0..).map(|((begin, length), what)| {
                Item { begin_ns: *begin, end_ns: begin + length, what }
            });
            let seen = |step: super::Step<i32>| (step.time_ns, step.slot, step.edge, step.item.what);
            let mut whole = Track::new(Fit::Nested, |_| 0, |_| false);
            whole.add(all(), None);
            let mut pieces = Track::new(Fit::Nested, |_| 0, |_| false);
            let (mut steps, mut from) = (Vec::new(), i64::MIN);
            let mut cuts = cuts;
            cuts.sort_unstable();
            for to in cuts.into_iter().map(Some).chain([None]) {
                let here = |item: &Item<i32>| item.begin_ns >= from && to.is_none_or(|to| item.begin_ns < to);
                pieces.add(all().filter(here), to);
                steps.extend(pieces.by_ref().map(seen));
                from = to.unwrap_or(from);
            }
            prop_assert_eq!(steps, whole.map(seen).collect::<Vec<_>>());
        }
    }
}
