//! Which iterations of a lane are bare.

use super::super::event::Pairing;
use crate::Bare;

/// A function of the iteration's number alone, so that a lane keeps nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pairs: u64,
    from: u64,
    every: u64,
    seed: u64,
}

impl Schedule {
    pub(crate) fn new(bare: &Bare, lane: &str) -> Self {
        let pairs = u64::from(bare.pairs);
        // Lanes draw differently, else all would be bare together.
        let seed = lane.bytes().fold(bare.seed, |seed, byte| mix(seed ^ u64::from(byte)));
        Self { pairs, from: bare.from, every: bare.every.max(2 * pairs).max(1), seed }
    }

    /// How the iteration of kind `Train` with this number takes part.
    pub(crate) fn at(&self, number: u64) -> Pairing {
        let Some(since) = number.checked_sub(self.from).filter(|_| self.pairs > 0) else { return Pairing::Alone };
        let (window, place) = (since / self.every, since % self.every);
        if place >= 2 * self.pairs {
            return Pairing::Alone;
        }
        let bare_first = mix(self.seed ^ mix(window * self.pairs + place / 2)) & 1 == 1;
        if place.is_multiple_of(2) {
            Pairing::First { bare: bare_first }
        } else {
            Pairing::Second { bare: !bare_first }
        }
    }
}

/// The mixing step of splitmix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::Bare;
    use crate::on::event::Pairing;

    #[test]
    fn each_pair_has_one_bare_iteration_in_either_place() {
        let schedule = Schedule::new(&Bare { pairs: 500, from: 7, every: 3_000, seed: 1 }, "drafter:0");
        let mut first = 0;
        for pair in 0..500 {
            let [a, b] = [0, 1].map(|place| schedule.at(7 + 2 * pair + place));
            assert!(a.is_bare() != b.is_bare(), "{a:?} {b:?}");
            first += u32::from(a == Pairing::First { bare: true });
        }
        assert!((200..300).contains(&first), "{first} of 500 pairs begin bare");
        assert_eq!([6, 1_007, 3_006].map(|n| schedule.at(n)), [Pairing::Alone; 3]);
        assert_ne!(schedule.at(3_007), Pairing::Alone);
        let other = Schedule::new(&Bare { pairs: 500, from: 7, every: 3_000, seed: 1 }, "target:0");
        assert!((7..1_007).any(|n| schedule.at(n) != other.at(n)));
    }

    #[test]
    fn no_pairs_no_bare_iterations() {
        let schedule = Schedule::new(&Bare { pairs: 0, from: 0, every: 0, seed: 0 }, "a");
        assert!((0..100).all(|n| schedule.at(n) == Pairing::Alone));
    }
}
