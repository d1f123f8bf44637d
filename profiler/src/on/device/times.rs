//! The times of a lane's moments, as far as the writer has heard of them.

use std::collections::VecDeque;

use super::shared::{Moment, Time};
use crate::on::event::Ticket;
use dflash_timeline::record::DeviceTime;

/// Moments that are remembered; with more, the oldest count as lost.
const KEPT: usize = 1 << 18;

/// A window over the lane's moments, by number.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Number of the first.
    first: u64,
    moments: VecDeque<Known>,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    NotYet,
    Never,
    At(Moment),
}

/// What is known of a span's device time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It may still come.
    NotYet,
    /// It will not come.
    Never,
    /// The end lies before the begin.
    Negative,
    /// Here it is.
    Known(DeviceTime),
}

impl Times {
    /// Notes when a moment was, or that nobody will know.
    pub(crate) fn put(&mut self, (number, moment): Time) {
        let Some(place) = number.checked_sub(self.first) else { return };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if place >= self.moments.len().saturating_add(KEPT) {
            return;
        }
        if place >= self.moments.len() {
            self.moments.resize(place + 1, Known::NotYet);
        }
        self.moments[place] = moment.map_or(Known::Never, Known::At);
        self.forget(self.moments.len().saturating_sub(KEPT));
    }

    /// The device time of a span between two moments. What the stream is called in the recording is not known here.
    pub(crate) fn look(&self, ticket: Ticket) -> Look {
        match (self.get(ticket.begin), self.get(ticket.end)) {
            (Known::Never, _) | (_, Known::Never) => Look::Never,
            (Known::NotYet, _) | (_, Known::NotYet) => Look::NotYet,
            (Known::At(begin), Known::At(end)) => match u64::try_from(end.chain_ns - begin.chain_ns) {
                Ok(duration_ns) => Look::Known(DeviceTime { begin_ns: begin.host_ns, duration_ns, stream: None }),
                Err(_) => Look::Negative,
            },
        }
    }

    /// Forgets moments before this one. The last is kept: the next span may begin at it.
    pub(crate) fn prune(&mut self, before: u64) {
        let done = before.saturating_sub(self.first).min(self.moments.len().saturating_sub(1) as u64);
        self.forget(done as usize);
    }

    pub(crate) fn len(&self) -> usize {
        self.moments.len()
    }

    fn forget(&mut self, count: usize) {
        self.moments.drain(..count);
        self.first += count as u64;
    }

    fn get(&self, number: u64) -> Known {
        if number == super::LOST || number < self.first {
            return Known::Never;
        }
        let place = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        self.moments.get(place).copied().unwrap_or(Known::NotYet)
    }
}

#[cfg(test)]
mod tests {
    use dflash_timeline::record::DeviceTime;

    use super::super::LOST;
    use super::super::shared::Moment;
    use super::{KEPT, Look, Times};
    use crate::StreamKey;
    use crate::on::event::Ticket;

    fn at(ns: i64) -> Option<Moment> {
        Some(Moment { chain_ns: ns, host_ns: ns + 1_000 })
    }

    fn look(times: &Times, begin: u64, end: u64) -> Look {
        times.look(Ticket { begin, end, stream: StreamKey { device: 0, stream: 0 } })
    }

    #[test]
    fn a_span_between_two_moments() {
        let mut times = Times::default();
        times.put((0, at(50)));
        times.put((2, at(40)));
        let known = |begin_ns, duration_ns| Look::Known(DeviceTime { begin_ns, duration_ns, stream: None });
        assert_eq!(look(&times, 0, 1), Look::NotYet);
        assert_eq!(look(&times, 0, 2), Look::Negative);
        assert_eq!(look(&times, 0, 9), Look::NotYet);
        assert_eq!(look(&times, 0, LOST), Look::Never);
        times.put((1, None));
        assert_eq!(look(&times, 0, 1), Look::Never);
        times.put((3, at(90)));
        assert_eq!(look(&times, 0, 3), known(1_050, 40));
        assert_eq!(look(&times, 3, 3), known(1_090, 0));
        times.prune(99);
        assert_eq!(look(&times, 3, 3), known(1_090, 0), "the next span may begin there");
        assert_eq!((look(&times, 0, 3), times.len()), (Look::Never, 1));
    }

    #[test]
    fn a_window_does_not_grow_without_end() {
        let mut times = Times::default();
        (0..3 * KEPT as u64).for_each(|number| times.put((number, at(0))));
        assert_eq!(times.len(), KEPT);
        times.put((u64::MAX - 1, at(0)));
        assert_eq!(times.len(), KEPT, "a number that cannot be");
    }
}
