//! What went into an export, and what did not.

/// What was exported, and what was left out or moved, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Slices: iterations, spans, device spans, items between lanes.
    pub slices: u64,
    /// Instants: hand-offs and marks.
    pub instants: u64,
    /// Readings of counters.
    pub samples: u64,
    /// Arrows from a put to its take.
    pub flows: u64,
    /// Takes that stood a little before their put, as two clock readings may, and were moved onto it.
    pub clamped: u64,
    /// Takes so far before their put that no clock explains it: without an arrow.
    pub backwards: u64,
    /// Ends of hand-offs whose other end is not there: it is outside of the window, lost, or still to come.
    pub unpaired: u64,
    /// Slices that begin before the clock did or last longer than a week: left out.
    pub implausible: u64,
    /// Slices that overlap too many others: left out.
    pub overlapping: u64,
    /// Readings that are no numbers: left out.
    pub not_finite: u64,
    /// Kernels, copies and other records of kernel captures that were merged in (Chrome JSON only).
    pub captured: u64,
    /// Records of kernel captures that could not be used.
    pub capture_discarded: u64,
}

impl Counts {
    /// All of them, with a name each.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("slices", self.slices),
            ("instants", self.instants),
            ("samples", self.samples),
            ("flows", self.flows),
            ("flows_clamped", self.clamped),
            ("flows_backwards", self.backwards),
            ("flows_unpaired", self.unpaired),
            ("implausible", self.implausible),
            ("overlapping", self.overlapping),
            ("not_finite", self.not_finite),
            ("captured", self.captured),
            ("capture_discarded", self.capture_discarded),
        ]
    }

    /// What a user should hear of, one phrase each; empty if all is well.
    #[must_use]
    pub fn concerns(&self) -> Vec<String> {
        let said = [
            (self.clamped, "hand-offs were moved by less than the clocks' uncertainty"),
            (self.backwards, "hand-offs were taken before they were put, and have no arrow"),
            (self.implausible, "spans begin before the clock did or last over a week, and were left out"),
            (self.overlapping, "spans overlap too many others, and were left out"),
            (self.not_finite, "readings are no numbers, and were left out"),
            (self.capture_discarded, "records of kernel captures could not be used"),
        ];
        said.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}
