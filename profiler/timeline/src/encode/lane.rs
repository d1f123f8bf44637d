//! What writer and reader both know of a lane.

/// What the next record of a lane is a difference to. Writer and reader keep the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneState {
    /// Last end of a span or iteration.
    pub end_ns: i64,
    /// Iteration of the next span, plus one; 0 = outside.
    pub span_iteration: u64,
    /// Stream of its device times, plus one; 0 = not known. The writer keeps its own id, the reader the block's.
    pub stream: u32,
    /// Number of the last iteration.
    pub iteration: u64,
    /// End of the last iteration, if there was one.
    pub iteration_end_ns: Option<i64>,
}

impl LaneState {
    /// What the next iteration is a difference to: its number, its begin.
    pub(crate) fn next_iteration(&self) -> (u64, i64) {
        let after = self.iteration.wrapping_add(1);
        let number = self.span_iteration.checked_sub(1).unwrap_or(after);
        (number, self.iteration_end_ns.unwrap_or(self.end_ns))
    }

    pub(crate) fn iteration_ended(&mut self, number: u64, end_ns: i64) {
        let span_iteration = number.wrapping_add(2);
        let iteration_end_ns = Some(end_ns);
        *self = Self { end_ns, span_iteration, iteration: number, iteration_end_ns, ..*self };
    }
}
