//! Why a GPU's clocks are low (`nvmlClocksEventReasons`), and when that is worth saying.

use std::time::Duration;

use dflash_timeline::record::Severity;

/// A reason that began is said again only after it was gone for so long: some flicker each second.
const QUIET: Duration = Duration::from_secs(60);

/// Bit, severity, words. Idle (0x1), chosen clocks (0x2, 0x100) and sync boost (0x10) are no news.
const REASONS: [(u64, Severity, &str); 5] = [
    (0x4, Severity::Info, "its power limit"),
    (0x8, Severity::Warning, "a hardware slowdown (temperature, power brake or a fast power trigger)"),
    (0x20, Severity::Warning, "its temperature (the driver lowers the clocks)"),
    (0x40, Severity::Warning, "its temperature (the hardware halves the clocks)"),
    (0x80, Severity::Warning, "the power brake of the machine's power supply"),
];

/// All bits that have a meaning today.
const KNOWN: u64 = 0x1ff;

/// What was said of one device.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When each reason was last seen.
    seen: [Option<Duration>; REASONS.len()],
    /// Bits without a meaning that were seen.
    unknown: u64,
}

impl Throttle {
    /// Takes a reading, and gives what is to be said.
    pub(crate) fn news(&mut self, device: &str, bits: u64, now: Duration) -> Vec<(Severity, String)> {
        let mut news = Vec::new();
        for ((bit, severity, words), seen) in REASONS.iter().zip(&mut self.seen) {
            if bits & bit == 0 {
                continue;
            }
            // A power limit is where a busy GPU should be: said once.
            let quiet = if *severity == Severity::Info { Duration::MAX } else { QUIET };
            if seen.is_none_or(|seen| now.saturating_sub(seen) > quiet) {
                news.push((*severity, format!("{device} is slowed by {words}")));
            }
            *seen = Some(now);
        }
        let unknown = bits & !KNOWN & !self.unknown;
        if unknown != 0 {
            self.unknown |= unknown;
            news.push((
                Severity::Info,
                format!("{device} is slowed for reasons that are not known here: {unknown:#x}"),
            ));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dflash_timeline::record::Severity;

    use super::Throttle;

    #[test]
    fn a_reason_is_said_when_it_begins() {
        let mut throttle = Throttle::default();
        let mut at = |second, bits| throttle.news("cuda:0", bits, Duration::from_secs(second));
        assert_eq!(at(0, 0x1 | 0x2 | 0x10 | 0x100), [], "nothing of note");
        assert_eq!(at(1, 0x4), [(Severity::Info, "cuda:0 is slowed by its power limit".to_owned())]);
        let hot = at(2, 0x4 | 0x40);
        assert_eq!(hot.len(), 1);
        assert_eq!(hot[0].0, Severity::Warning);
        assert_eq!(at(3, 0x40), []);
        assert_eq!(at(50, 0), []);
        assert_eq!(at(60, 0x40), [], "it flickers");
        assert_eq!(at(121, 0x44).len(), 1, "it begins again; the power limit was said");
    }

    #[test]
    fn unknown_bits_are_said_as_they_are() {
        let mut throttle = Throttle::default();
        let news = throttle.news("cuda:0", 1 << 40 | 1, Duration::ZERO);
        assert_eq!(news.len(), 1);
        assert!(news[0].1.ends_with("0x10000000000"), "{news:?}");
        assert_eq!(throttle.news("cuda:0", 1 << 40, Duration::ZERO), []);
    }
}
