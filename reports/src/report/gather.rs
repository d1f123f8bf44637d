//! The facts of a report, out of a stream of records: what is kept does not grow with the run.

use super::cost::{self, Cost, MarkRow};
use super::paired::Pairs;
use super::{Losses, Report, SCHEMA, Throughput};
use crate::counters::Readings;
use crate::handoffs::Joined;
use crate::limiting::limiting;
use crate::passes::{Passes, Take};
use crate::samples::CpuSamples;
use crate::scope::Scope;
use crate::share::Share;
use crate::sorted::Sorted;
use crate::survey::Survey;
use crate::verdict::verdict;
use crate::walk::Window;
use crate::words::Words;
use crate::{allocator, gaps, goodput, gpu, queues, stages, stragglers};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Flow, Iteration, LaneId, Mark, Sample, Span, StackSample};

/// The second of two times through a stream.
pub(crate) struct Gather<'a> {
    share: Share,
    survey: &'a Survey,
    scope: Scope,
    words: Words,
    lane_ranks: Vec<u32>,
    counter_ranks: Vec<u32>,
    passes: Passes,
    stages: stages::Gathered,
    goodput: goodput::Gathered,
    work: stragglers::Work,
    gaps: gaps::Gathered,
    pairs: Pairs,
    tokens: gpu::Tokens,
    samples: Sorted<Sample>,
    readings: Readings,
    flows: Sorted<(u32, Flow)>,
    handoffs: Joined,
    marks: Vec<Mark>,
    /// Stacks, and those without a lane.
    stacks: (u64, u64),
}

impl<'a> Gather<'a> {
    pub(crate) fn new(timeline: &Timeline, window: &Window, survey: &'a Survey, share: Share) -> Self {
        Self {
            share,
            survey,
            scope: Scope::new(window),
            words: Words::default(),
            lane_ranks: Vec::new(),
            counter_ranks: Vec::new(),
            passes: Passes::default(),
            stages: stages::Gathered::default(),
            goodput: goodput::Gathered::default(),
            work: stragglers::Work::default(),
            gaps: gaps::Gathered::default(),
            pairs: Pairs::from(survey.level_from.unwrap_or(i64::MIN)),
            tokens: gpu::Tokens::new(timeline, survey),
            samples: Sorted::default(),
            readings: Readings::new(timeline, window, survey),
            flows: Sorted::default(),
            handoffs: Joined::default(),
            marks: Vec::new(),
            stacks: (0, 0),
        }
    }

    /// Takes over the lanes of the other worker, and the hand-offs.
    pub(crate) fn join(&mut self, other: Self) {
        (self.flows, self.handoffs) = (other.flows, other.handoffs);
        self.passes.join(&other.passes);
        self.stages.join(other.stages);
        self.goodput.join(other.goodput);
        self.work.join(other.work);
        self.gaps.join(other.gaps);
        self.pairs.join(other.pairs);
        self.tokens.join(&other.tokens);
    }

    /// The report; `begin_ns` is when the recording began, and `first_ns` when the first of the lanes' records did.
    pub(crate) fn report(self, timeline: &Timeline, begin_ns: Option<i64>, first_ns: Option<i64>) -> Report {
        let Self { scope, mut readings, mut handoffs, survey, mut samples, mut flows, mut marks, .. } = self;
        samples.finish(|sample| readings.add(&sample));
        flows.finish(|(rank, flow)| handoffs.add(rank, &scope, &flow));
        let (readings, window) = (&readings, scope.window());
        let stages = self.stages.finish(timeline, self.passes.strays());
        let verdict = verdict(&stages);
        let gaps = self.gaps.finish(timeline);
        marks.sort_by_key(|mark| mark.time_ns);
        let marks: Vec<MarkRow> = marks.iter().filter_map(|mark| cost::about(mark, first_ns)).collect();
        Report {
            schema: SCHEMA,
            run: None,
            other_runs: Vec::new(),
            places: Vec::new(),
            scope: window.scope(begin_ns),
            throughput: Throughput::of(&stages),
            verdict_text: verdict.to_string(),
            goodput: self.goodput.finish(timeline),
            peers: self.work.finish(timeline, window),
            queues: queues::rows(timeline, readings),
            handoffs: handoffs.finish(timeline, &scope, &stages),
            losses: Losses::of(timeline, &stages),
            profiler: Cost::of(timeline, readings, &self.pairs, &stages, marks),
            allocators: allocator::rows(timeline, readings, survey),
            gpus: gpu::rows(timeline, readings, &self.tokens),
            limiting: limiting(&verdict, &gaps, &[]),
            gaps,
            captures: Vec::new(),
            verdict,
            cpu_samples: CpuSamples::of(timeline, readings, self.stacks),
            stages,
        }
    }
}

impl Take for Gather<'_> {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
        self.words.texts(timeline);
        let known = self.lane_ranks.len().min(timeline.lanes.len());
        self.lane_ranks.extend(timeline.lanes[known..].iter().map(|lane| lane.rank));
        let known = self.counter_ranks.len().min(timeline.counters.len());
        self.counter_ranks.extend(timeline.counters[known..].iter().map(|counter| counter.rank));
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.share.has(lane)
    }

    #[inline(always)]
    fn span(&mut self, span: &Span) {
        // A window's warnings are about all lanes: spans without a place are counted of each.
        if self.share.has(span.lane) {
            self.passes.span(span);
        }
    }

    fn iteration(&mut self, iteration: &Iteration) {
        if !self.share.has(iteration.lane) {
            return;
        }
        self.tokens.add(iteration);
        let Self { scope, survey, words, passes, stages, goodput, work, gaps, pairs, .. } = self;
        passes.iteration(iteration, |iteration, spans| {
            if !scope.has(iteration) {
                return;
            }
            stages.add(iteration, spans);
            goodput.add(survey, words, iteration, spans);
            work.add(words, iteration, spans);
            gaps.add(words, &survey.timed, iteration, spans);
            pairs.add(iteration);
        });
    }

    #[inline]
    fn sample(&mut self, sample: &Sample) {
        if !self.share.is_first() || !self.scope.has_time(sample.time_ns) {
            return;
        }
        let rank = self.counter_ranks.get(sample.counter.0 as usize).copied().unwrap_or(0);
        let readings = &mut self.readings;
        self.samples.push(rank, sample.time_ns, *sample, |sample| readings.add(&sample));
    }

    fn flow(&mut self, flow: &Flow) {
        if !self.share.is_last() {
            return;
        }
        let rank = self.lane_ranks.get(flow.lane.0 as usize).copied().unwrap_or(0);
        let Self { flows, handoffs, scope, .. } = self;
        flows.push(rank, flow.time_ns, (rank, *flow), |(rank, flow)| handoffs.add(rank, scope, &flow));
    }

    fn mark(&mut self, mark: &Mark) {
        let ours = self.share.is_first() && self.scope.has_time(mark.time_ns);
        if ours && cost::about(mark, None).is_some() {
            self.marks.push(mark.clone());
        }
    }

    fn stack(&mut self, stack: &StackSample) {
        if self.share.is_first() {
            self.stacks.0 += 1;
            self.stacks.1 += u64::from(stack.lane.is_none());
        }
    }
}
