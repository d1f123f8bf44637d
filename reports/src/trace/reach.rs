//! What must be known of a recording before its pieces come: how far it reaches, how dense it is, what lies across pieces.

use dflash_timeline::record::{Anchor, Flow, Iteration, LaneId, Mark, Sample, Span, StreamId};
use dflash_timeline::{Timeline, Visit};

/// Stretches into which the recording's time is divided at most.
const BINS: usize = 1 << 14;

/// What a first time through has found.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// First begin and last end of spans and iterations.
    pub extent: Option<(i64, i64)>,
    pub last_sample_ns: Option<i64>,
    /// By lane: the streams on which it has device times, `None` where that is not known.
    streams: Vec<Vec<Option<StreamId>>>,
    density: Density,
    flows: Vec<Flow>,
    marks: Vec<Mark>,
    anchors: Vec<Anchor>,
}

impl Reach {
    /// Of a timeline in memory, whose records stay where they are.
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut reach = Self::default();
        timeline.spans.iter().for_each(|span| reach.span(*span));
        timeline.iterations.iter().for_each(|iteration| reach.iteration(*iteration));
        timeline.samples.iter().for_each(|sample| reach.sample(*sample));
        reach
    }

    /// What is said of the whole, with the records that lie across pieces, in the order of time.
    pub(super) fn head(&mut self, books: Timeline) -> Timeline {
        let (mut flows, mut marks) = (std::mem::take(&mut self.flows), std::mem::take(&mut self.marks));
        flows.sort_by_key(|flow| flow.time_ns);
        marks.sort_by_key(|mark| mark.time_ns);
        Timeline { flows, marks, anchors: crate::passes::settled(std::mem::take(&mut self.anchors)), ..books }
    }

    /// The streams on which a lane has device times, in order.
    pub(super) fn streams(&self, LaneId(lane): LaneId) -> &[Option<StreamId>] {
        self.streams.get(lane as usize).map_or(&[], Vec::as_slice)
    }

    #[cold]
    fn note(&mut self, lane: usize, stream: Option<StreamId>) {
        self.streams.resize(self.streams.len().max(lane + 1), Vec::new());
        self.streams[lane].push(stream);
        self.streams[lane].sort_unstable();
    }

    /// Moments that part the recording into pieces of about so many records.
    pub(super) fn cuts(&self, records: u64) -> Vec<i64> {
        self.density.cuts(records)
    }

    fn add(&mut self, begin_ns: i64, duration_ns: u64) {
        let end_ns = begin_ns.saturating_add_unsigned(duration_ns);
        self.extent = Some(self.extent.map_or((begin_ns, end_ns), |(a, b)| (a.min(begin_ns), b.max(end_ns))));
        self.density.add(begin_ns);
    }
}

impl Visit for Reach {
    #[inline]
    fn span(&mut self, span: Span) {
        self.add(span.begin_ns, span.duration_ns);
        if let Some(device) = span.device
            && !self.streams(span.lane).contains(&device.stream)
        {
            self.note(span.lane.0 as usize, device.stream);
        }
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.add(iteration.begin_ns, iteration.duration_ns);
    }

    fn sample(&mut self, sample: Sample) {
        self.last_sample_ns = self.last_sample_ns.max(Some(sample.time_ns));
        self.density.add(sample.time_ns);
    }

    fn flow(&mut self, flow: Flow) {
        self.flows.push(flow);
    }

    fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.anchors.push(anchor);
    }
}

/// How many records begin when: bins of one width from the first record on, which double as the recording goes on.
#[derive(Debug)]
struct Density {
    origin_ns: Option<i64>,
    width_ns: u64,
    bins: Vec<u32>,
}

impl Default for Density {
    fn default() -> Self {
        Self { origin_ns: None, width_ns: 1_000_000, bins: Vec::new() }
    }
}

impl Density {
    #[inline]
    fn add(&mut self, ns: i64) {
        let origin = *self.origin_ns.get_or_insert(ns);
        // What is earlier than the first that came is little.
        let after = ns.max(origin).abs_diff(origin);
        while after / self.width_ns >= BINS as u64 {
            self.widen();
        }
        let bin = (after / self.width_ns) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] = self.bins[bin].saturating_add(1);
    }

    #[cold]
    fn widen(&mut self) {
        self.bins =
            self.bins.chunks(2).map(|pair| pair.iter().fold(0, |sum: u32, bin| sum.saturating_add(*bin))).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    fn cuts(&self, records: u64) -> Vec<i64> {
        let (mut cuts, mut held) = (Vec::new(), 0);
        let Some(origin) = self.origin_ns else { return cuts };
        for (at, bin) in (0_u64..).zip(&self.bins) {
            let bin = u64::from(*bin);
            if held > 0 && held + bin > records {
                cuts.push(origin.saturating_add_unsigned(at.saturating_mul(self.width_ns)));
                held = 0;
            }
            held += bin;
        }
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::{BINS, Density};

    #[test]
    fn pieces_hold_about_as_much_wherever_the_records_are() {
        let mut density = Density::default();
        // An hour in which little happens, then a second in which much does.
        let times: Vec<i64> = (0..3600)
            .map(|s| s * 1_000_000_000)
            .chain((0..100_000).map(|at| 3_600_000_000_000 + at * 10_000))
            .collect();
        times.iter().for_each(|ns| density.add(*ns));
        assert!(density.bins.len() <= BINS);
        let cuts = density.cuts(30_000);
        let held = |from: i64, to: i64| times.iter().filter(|ns| (from..to).contains(ns)).count();
        let ends: Vec<i64> = [i64::MIN].into_iter().chain(cuts).chain([i64::MAX]).collect();
        let pieces: Vec<usize> = ends.windows(2).map(|ends| held(ends[0], ends[1])).collect();
        assert_eq!(pieces.iter().sum::<usize>(), times.len());
        assert!(pieces.len() >= 4 && pieces.iter().all(|held| *held <= 50_000), "{pieces:?}");
    }

    #[test]
    fn of_nothing_there_is_one_piece() {
        assert_eq!(Density::default().cuts(1), [0_i64; 0]);
    }
}
