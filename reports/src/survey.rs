//! What must be known of a stream before it is gone through: how far things reach, and what comes later in it.

use crate::allocator::STEADY_AFTER;
use crate::gaps::Timed;
use crate::passes::Take;
use crate::scope::Scope;
use crate::share::Share;
use crate::walk::{Window, end_ns};
use dflash_timeline::Timeline;
use dflash_timeline::record::{CounterId, Iteration, Kind, LaneId, Mark, Sample, Span};

/// The first of two times through a stream.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    share: Share,
    scope: Scope,
    /// First begin and last end of spans and iterations.
    pub extent: Option<(i64, i64)>,
    /// Last reading of a counter.
    pub last_sample_ns: Option<i64>,
    /// Stages with device times.
    pub timed: Timed,
    /// By lane.
    pub lanes: Vec<LaneSurvey>,
    /// By counter.
    pub counters: Vec<CounterSurvey>,
    /// When the level was last spoken of.
    pub level_from: Option<i64>,
    /// Iterations in the window.
    pub iterations: u64,
}

/// What is known of a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneSurvey {
    /// Numbers with which it began anew, in order: no greater than the one before.
    pub restarts: Vec<u64>,
    last: Option<u64>,
    /// When its iteration 20 had ended, looking at all times.
    pub steady_ns: Option<i64>,
    /// Iterations in the window.
    pub iterations: u64,
    /// First and last end of its training iterations in the window.
    pub train_ends: Option<(i64, i64)>,
    /// How many those are.
    pub trained: u64,
}

/// What is known of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterSurvey {
    /// Finite readings in the window.
    pub readings: u64,
    /// First and last time of them.
    pub times: Option<(i64, i64)>,
    /// The latest finite reading of all times, and when that was.
    pub latest: Option<(i64, f64)>,
}

impl Survey {
    pub(crate) fn new(window: &Window) -> Self {
        Self { scope: Scope::new(window), ..Self::default() }
    }

    /// A worker's part of it.
    pub(crate) fn of_share(window: &Window, share: Share) -> Self {
        Self { share, ..Self::new(window) }
    }

    /// Takes over the lanes of the other worker.
    pub(crate) fn join(&mut self, other: Self) {
        if let Some((begin, end)) = other.extent {
            self.reaches(begin, end);
        }
        self.timed.join(other.timed);
        self.lanes.resize_with(self.lanes.len().max(other.lanes.len()), LaneSurvey::default);
        let theirs = (0..).zip(&mut self.lanes).zip(other.lanes).filter(|((id, _), _)| other.share.has(LaneId(*id)));
        theirs.for_each(|((_, own), lane)| *own = lane);
        self.iterations += other.iterations;
    }

    /// Of a timeline in memory.
    pub(crate) fn of(timeline: &Timeline, window: &Window) -> Self {
        let mut survey = Self::new(window);
        crate::passes::feed(timeline, &mut survey);
        survey
    }

    /// Of a timeline's counters alone.
    pub(crate) fn of_counters(timeline: &Timeline, window: &Window) -> Self {
        let mut survey = Self::new(window);
        survey.texts(timeline);
        timeline.samples.iter().for_each(|sample| survey.sample(sample));
        survey
    }

    /// Of a timeline's iterations alone.
    pub(crate) fn of_iterations(timeline: &Timeline, window: &Window) -> Self {
        let mut survey = Self::new(window);
        survey.texts(timeline);
        timeline.iterations.iter().for_each(|iteration| survey.iteration(iteration));
        survey
    }

    pub(crate) fn lane(&self, LaneId(lane): LaneId) -> Option<&LaneSurvey> {
        self.lanes.get(lane as usize)
    }

    /// When the last of a device's lanes had done iteration 20; `None` if there is no lane, or one has not.
    pub(crate) fn steady_from(&self, timeline: &Timeline, rank: u32, device: &str) -> Option<i64> {
        let lanes = (0..).map(LaneId).zip(&timeline.lanes);
        let own = lanes.filter(|(_, lane)| lane.device == device && lane.rank == rank);
        own.map(|(id, _)| self.lane(id)?.steady_ns).collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    /// Takes a reading from outside of what is read otherwise.
    pub(crate) fn earlier_sample(&mut self, sample: &Sample) {
        if !self.scope.has_time(sample.time_ns) {
            self.sample(sample);
        }
    }

    #[inline]
    fn reaches(&mut self, begin_ns: i64, end_ns: i64) {
        self.extent = Some(self.extent.map_or((begin_ns, end_ns), |(a, b)| (a.min(begin_ns), b.max(end_ns))));
    }
}

impl Take for Survey {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
        self.lanes.resize_with(timeline.lanes.len().max(self.lanes.len()), LaneSurvey::default);
        self.counters.resize(timeline.counters.len().max(self.counters.len()), CounterSurvey::default());
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.share.has(lane)
    }

    #[inline(always)]
    fn span(&mut self, span: &Span) {
        if !self.share.has(span.lane) {
            return;
        }
        self.reaches(span.begin_ns, span.begin_ns.saturating_add_unsigned(span.duration_ns));
        self.timed.learn(span);
    }

    fn iteration(&mut self, iteration: &Iteration) {
        if !self.share.has(iteration.lane) {
            return;
        }
        let end = end_ns(iteration);
        self.reaches(iteration.begin_ns, end);
        let inside = self.scope.has(iteration);
        let Some(lane) = self.lanes.get_mut(iteration.lane.0 as usize) else { return };
        if iteration.number >= STEADY_AFTER && lane.steady_ns.is_none() {
            // Where the record of that very iteration is lost, the next one's begin is as near as one gets.
            let its = iteration.number == STEADY_AFTER;
            lane.steady_ns = Some(if its { end } else { iteration.begin_ns });
        }
        if !inside {
            return;
        }
        if lane.last.is_some_and(|last| iteration.number <= last) {
            lane.restarts.push(iteration.number);
        }
        lane.last = Some(iteration.number);
        lane.iterations += 1;
        self.iterations += 1;
        if iteration.kind == Kind::Train {
            lane.trained += 1;
            lane.train_ends = Some(lane.train_ends.map_or((end, end), |(a, b)| (a.min(end), b.max(end))));
        }
    }

    #[inline]
    fn sample(&mut self, sample: &Sample) {
        if !self.share.is_first() {
            return;
        }
        let (CounterId(id), time) = (sample.counter, sample.time_ns);
        self.last_sample_ns = self.last_sample_ns.max(Some(time));
        let Some(counter) = self.counters.get_mut(id as usize).filter(|_| sample.value.is_finite()) else { return };
        if counter.latest.is_none_or(|(latest, _)| latest <= time) {
            counter.latest = Some((time, sample.value));
        }
        if self.scope.has_time(time) {
            counter.readings += 1;
            counter.times = Some(counter.times.map_or((time, time), |(a, b)| (a.min(time), b.max(time))));
        }
    }

    fn mark(&mut self, mark: &Mark) {
        if crate::report::says(mark, &["level"]) {
            self.level_from = self.level_from.max(Some(mark.time_ns));
        }
    }
}
