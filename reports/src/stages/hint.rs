//! What host and device time of one stage say together.
//!
//! Judged by the median of host ÷ device time over the iterations that have both. The bounds are wide on purpose: what
//! lies between them gets no hint. Where both take as long, the device's lag tells more: a device that was behind when the
//! stage began and level with the host at its end was waited for. One that is behind at both ends holds the host back:
//! mostly since its queue of launches is full (some 1,000 of them), so that the host can launch only as fast as the device
//! works; a wait in the midst of the stage looks the same. One that was level at both ends may have been waited for, or
//! have run dry all along. There only a kernel capture tells, and the hint says no more than what is seen.

use serde::Serialize;

/// Host time of at most this part of the device time: the host runs ahead.
const AHEAD: f64 = 0.5;
/// Host and device time within this ratio of each other are alike.
const ALIKE: f64 = 1.25;
/// Host time of at least this many times the device time: the device waits for launches.
const BEHIND: f64 = 2.0;
/// A lag at the begin or the end of at least this part of the device's time: the device had work left.
const LAGGING: f64 = 0.1;
/// A stage with less than this on both clocks gets no hint: the two events alone take some 3 µs of it.
const SHORT_NS: u64 = 20_000;
/// Fewest iterations with both times that are judged.
const FEWEST: u64 = 5;
/// Part of a stage's host time that makes what is nested in it speak for all of it.
const MOST_OF_IT: f64 = 0.5;

/// What a stage's two clocks say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Host ≪ device: the host launches and goes on, as it should.
    Asynchronous,
    /// The host waits for the device, and says so: a span `sync.*`, or one whose time is mostly such spans'.
    Sync,
    /// Host ≈ device without a span `sync.*`, and the device was behind at the begin but not at the end: something waits
    /// for it unsaid.
    HiddenSync,
    /// Host ≈ device, which is behind at both ends: the queue of launches is full, which costs nothing.
    HeldBack,
    /// Host ≈ device, level at both ends: something waits for the device unsaid, or the device runs dry.
    InStep,
    /// Host ≫ device: the device waits for launches.
    LaunchBound,
}

impl Hint {
    /// The words for it in a table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asynchronous => "async",
            Self::Sync => "sync",
            Self::HiddenSync => "hidden sync",
            Self::HeldBack => "held back",
            Self::InStep => "in step",
            Self::LaunchBound => "launch-bound",
        }
    }
}

/// What is known of one stage.
#[derive(Clone, Copy, Default)]
pub(super) struct Evidence<'a> {
    pub stage: &'a str,
    /// Median of host ÷ device time over the iterations that have both.
    pub ratio: Option<f64>,
    /// Median of how far the device was behind when the stage began ÷ device time, of the same iterations.
    pub lag: Option<f64>,
    /// The same of its end.
    pub left: Option<f64>,
    /// How many those are.
    pub pairs: u64,
    /// The longest time on either clock of those, nanoseconds.
    pub longest_ns: u64,
    /// Host time in all.
    pub host_ns: u64,
    /// Of that, in nested spans `sync.*`.
    pub sync_ns: u64,
}

/// Whether a name says that the host waits for the device.
pub(crate) fn is_sync(name: &str) -> bool {
    name.starts_with("sync.")
}

/// Whether a name says that the lane waits for another lane: there is nothing to compare.
pub(crate) fn is_wait(name: &str) -> bool {
    name.ends_with(".wait") || name.ends_with(".put")
}

impl Evidence<'_> {
    pub(super) fn hint(&self) -> Option<Hint> {
        if is_sync(self.stage) {
            return Some(Hint::Sync);
        }
        if is_wait(self.stage) {
            return None;
        }
        if self.sync_ns > 0 && self.sync_ns as f64 >= MOST_OF_IT * self.host_ns as f64 {
            return Some(Hint::Sync);
        }
        if self.pairs < FEWEST || self.longest_ns < SHORT_NS {
            return None;
        }
        match self.ratio? {
            ratio if ratio <= AHEAD => Some(Hint::Asynchronous),
            ratio if ratio >= BEHIND => Some(Hint::LaunchBound),
            ratio if (1.0 / ALIKE..=ALIKE).contains(&ratio) => {
                let behind = |lag: Option<f64>| lag.is_some_and(|lag| lag >= LAGGING);
                Some(match (behind(self.lag), behind(self.left)) {
                    (true, true) => Hint::HeldBack,
                    (true, false) => Hint::HiddenSync,
                    (false, _) => Hint::InStep,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Evidence, Hint};

    fn hint(stage: &str, host_us: u64, device_us: u64) -> Option<Hint> {
        lagging(stage, host_us, device_us, 5)
    }

    /// A device that is behind by `lag_us` at the begin, and level at the end unless both take as long from there on.
    fn lagging(stage: &str, host_us: u64, device_us: u64, lag_us: u64) -> Option<Hint> {
        between(stage, (host_us, device_us), (lag_us, (lag_us + device_us).saturating_sub(host_us)))
    }

    fn between(stage: &str, (host_us, device_us): (u64, u64), (lag_us, left_us): (u64, u64)) -> Option<Hint> {
        let part = |us: u64| Some(us as f64 / device_us.max(1) as f64);
        let (lag, left) = (part(lag_us), part(left_us));
        let ratio = Some((host_us * 1000) as f64 / (device_us * 1000).max(1) as f64);
        let longest_ns = host_us.max(device_us) * 1000;
        Evidence { stage, ratio, lag, left, pairs: 5, longest_ns, host_ns: host_us * 5000, sync_ns: 0 }.hint()
    }

    #[test]
    fn two_clocks_side_by_side() {
        assert_eq!(hint("drafter.forward", 100, 1000), Some(Hint::Asynchronous));
        assert_eq!(hint("drafter.forward", 1000, 1100), Some(Hint::InStep));
        assert_eq!(lagging("drafter.clip", 1000, 800, 200), Some(Hint::HiddenSync), "it was behind, and is no more");
        assert_eq!(lagging("drafter.clip", 1000, 1000, 5000), Some(Hint::HeldBack), "it is as far behind as it was");
        assert_eq!(
            between("drafter.clip", (1000, 1100), (400, 90)),
            Some(Hint::HiddenSync),
            "less than a tenth is none"
        );
        assert_eq!(lagging("drafter.forward", 100, 1000, 900), Some(Hint::Asynchronous), "behind, and stays so");
        assert_eq!(hint("drafter.forward", 1000, 100), Some(Hint::LaunchBound));
        assert_eq!(hint("drafter.forward", 1000, 0), Some(Hint::LaunchBound));
        assert_eq!(hint("drafter.forward", 700, 1000), None, "between the bounds nothing is said");
        assert_eq!(hint("drafter.upload", 3, 19), None, "too short to judge");
    }

    #[test]
    fn names_that_say_what_they_do() {
        assert_eq!(hint("sync.loss", 3, 3), Some(Hint::Sync));
        assert_eq!(hint("drafter.wait", 1000, 1000), None);
        assert_eq!(hint("target.put", 1000, 10), None);
    }

    #[test]
    fn few_iterations_say_nothing_and_nested_syncs_speak_for_the_stage() {
        let (stage, longest_ns, host_ns) = ("drafter.clip", 1_000_000, 4_000_000);
        let (ratio, lag, left, pairs) = (Some(1.0), Some(0.0), Some(0.0), 4);
        let evidence = |sync_ns| Evidence { stage, ratio, lag, left, pairs, longest_ns, host_ns, sync_ns };
        assert_eq!(evidence(0).hint(), None);
        assert_eq!(evidence(1_000_000).hint(), None);
        assert_eq!(evidence(2_000_000).hint(), Some(Hint::Sync));
    }
}
