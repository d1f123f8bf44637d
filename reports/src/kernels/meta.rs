//! `kernels-*.meta.json`: which iterations a capture holds, and where it stands on the host's clocks. Every field may be
//! missing, and some
//! have two names.

use dflash_timeline::record::Anchor;
use dflash_timeline::{Shift, Timeline};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What stands beside a capture.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    pub lane: Option<String>,
    pub rank: u32,
    #[serde(alias = "first")]
    pub first_iteration: Option<u64>,
    #[serde(alias = "last")]
    pub last_iteration: Option<u64>,
    #[serde(alias = "begin_ns")]
    pub begin_monotonic_ns: Option<i64>,
    #[serde(alias = "end_ns")]
    pub end_monotonic_ns: Option<i64>,
    #[serde(alias = "begin_unix_ns")]
    pub begin_realtime_ns: Option<i64>,
    #[serde(alias = "end_unix_ns")]
    pub end_realtime_ns: Option<i64>,
    #[serde(alias = "lacks")]
    pub blind: Vec<String>,
}

/// How to get from CLOCK_REALTIME, by which Kineto dates, to CLOCK_MONOTONIC: by one anchor, or between two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Offset {
    from: Anchor,
    to: Anchor,
}

impl Meta {
    /// Reads it; an error says in one line what is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: cannot read it: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name}: not understood: {error}"))
    }

    /// On rank 0's clock, as the timeline's records are.
    pub(crate) fn moved(mut self, shifts: &BTreeMap<u32, Shift>) -> Self {
        let Some(shift) = shifts.get(&self.rank) else { return self };
        for ns in [&mut self.begin_monotonic_ns, &mut self.end_monotonic_ns].into_iter().flatten() {
            *ns = shift.moved(*ns);
        }
        self
    }

    /// Begin and end, monotonic nanoseconds.
    pub(crate) fn window(&self) -> Option<(i64, i64)> {
        self.begin_monotonic_ns.zip(self.end_monotonic_ns).filter(|(begin, end)| begin < end)
    }

    /// The way between the clocks: by this file's own anchors, else by the timeline's nearest one.
    pub(crate) fn offset(&self, timeline: &Timeline, near_realtime_ns: Option<i64>) -> Option<Offset> {
        let anchor = |monotonic: Option<i64>, realtime: Option<i64>| {
            monotonic.zip(realtime).map(|(monotonic_ns, realtime_ns)| Anchor { monotonic_ns, realtime_ns })
        };
        let begin = anchor(self.begin_monotonic_ns, self.begin_realtime_ns);
        let end = anchor(self.end_monotonic_ns, self.end_realtime_ns);
        let one = |anchor: Anchor| Offset { from: anchor, to: anchor };
        match (begin, end) {
            (Some(from), Some(to)) if from.realtime_ns < to.realtime_ns => Some(Offset { from, to }),
            (Some(anchor), _) | (_, Some(anchor)) => Some(one(anchor)),
            (None, None) => {
                let near = near_realtime_ns?;
                timeline.anchors.iter().min_by_key(|anchor| anchor.realtime_ns.abs_diff(near)).copied().map(one)
            }
        }
    }
}

impl Offset {
    /// CLOCK_MONOTONIC at a moment of CLOCK_REALTIME. A clock that was stepped in between is off by the step.
    pub(crate) fn monotonic(&self, realtime_ns: i64) -> i64 {
        let offset = |anchor: Anchor| i128::from(anchor.monotonic_ns) - i128::from(anchor.realtime_ns);
        let (first, last) = (offset(self.from), offset(self.to));
        let length = i128::from(self.to.realtime_ns) - i128::from(self.from.realtime_ns);
        let since = (i128::from(realtime_ns) - i128::from(self.from.realtime_ns)).clamp(0, length);
        let drift = if length > 0 { (last - first) * since / length } else { 0 };
        let monotonic = i128::from(realtime_ns) + first + drift;
        i64::try_from(monotonic).unwrap_or(if monotonic < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::Meta;
    use dflash_timeline::Timeline;
    use dflash_timeline::record::Anchor;

    #[test]
    fn two_anchors_are_drawn_a_line_between() {
        let text = r#"{"begin_monotonic_ns": 1000, "end_monotonic_ns": 2000, "begin_realtime_ns": 500000,
                       "end_realtime_ns": 501010, "unknown": [1]}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        let offset = meta.offset(&Timeline::default(), None).unwrap();
        assert_eq!(
            [499_900, 500_000, 500_505, 501_010, 501_110].map(|t| offset.monotonic(t)),
            [900, 1000, 1500, 2000, 2100]
        );
        assert_eq!(meta.window(), Some((1000, 2000)));
    }

    #[test]
    fn another_hosts_capture_is_moved_with_its_rank() {
        let text = r#"{"rank": 1, "begin_ns": 1000, "end_ns": 2000, "begin_unix_ns": 500000, "end_unix_ns": 501000}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        let moved = meta.clone().moved(&[(1, 50_000_000.into())].into());
        assert_eq!(moved.window(), Some((50_001_000, 50_002_000)));
        assert_eq!(moved.offset(&Timeline::default(), None).unwrap().monotonic(500_500), 50_001_500);
        assert_eq!(meta.clone().moved(&[(2, 7.into())].into()), meta);
    }

    #[test]
    fn names_of_either_kind_are_taken() {
        let text = r#"{"schema": 1, "trace": "kernels-7-2.json", "rank": 1, "attempt": 1, "lane": "drafter:1", "first": 7,
                       "last": null, "asked": 2, "begin_ns": 1000, "end_ns": 2000, "begin_unix_ns": 5, "end_unix_ns": 6,
                       "lacks": ["operators of target:0"]}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert_eq!((meta.rank, meta.first_iteration, meta.last_iteration), (1, Some(7), None));
        assert_eq!((meta.window(), meta.begin_realtime_ns, meta.blind.len()), (Some((1000, 2000)), Some(5), 1));
    }

    #[test]
    fn without_them_the_nearest_of_the_timeline() {
        let mut timeline = Timeline::default();
        assert_eq!(Meta::default().offset(&timeline, Some(7)), None);
        timeline.anchors = vec![
            Anchor { monotonic_ns: 0, realtime_ns: 1_000_000 },
            Anchor { monotonic_ns: 50_000, realtime_ns: 1_050_100 },
        ];
        let offset = Meta::default().offset(&timeline, Some(1_049_000)).unwrap();
        assert_eq!(offset.monotonic(1_049_100), 49_000);
    }
}
