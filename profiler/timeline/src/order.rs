//! Sorting of what is nearly sorted.

/// Places that an item may be moved, on average, before another way to sort is quicker.
const MOVES: usize = 16;

/// Sorts by `key`; items of the same key keep their order.
///
/// Records come nearly in order: a span is written when it ends, so that it stands a few places behind the ones that it
/// holds. Each is moved to its place, which costs next to nothing; if much is moved, the rest is sorted as any list.
pub fn sort<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let mut moves = MOVES * items.len();
    for at in 1..items.len() {
        let own = key(&items[at]);
        let mut place = at;
        while place > 0 && key(&items[place - 1]) > own {
            place -= 1;
            if moves == 0 {
                items.sort_by_key(key);
                return;
            }
            moves -= 1;
        }
        if place < at {
            items[place..=at].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort;

    proptest! {
        #[test]
        fn as_the_stable_sort_does(keys in proptest::collection::vec(0..50_u8, 0..200), spread in 0..100_usize) {
            // In order, up to `spread` places.
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            items.sort();
            for at in 0..items.len() {
                let other = (at + usize::from(items[at].0) % (spread + 1)).min(items.len() - 1);
                items.swap(at, other);
            }
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort(&mut items, |(key, _)| *key);
            prop_assert_eq!(items, expected);
        }
    }
}
