//! How long a lane's stages and iterations took, over time.

use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, LaneId, NameId};

use super::series::{Bins, Means};

/// Milliseconds of the training iterations, where they begin.
pub fn total_curve(timeline: &Timeline, lane: LaneId, bins: Bins) -> Vec<Option<f64>> {
    let mut means = Means::default();
    let first = timeline.iterations.partition_point(|pass| (pass.lane, pass.begin_ns) < (lane, bins.begin_ns()));
    let its = timeline.iterations[first..].iter().take_while(|pass| pass.lane == lane);
    for iteration in its.filter(|pass| pass.kind == Kind::Train) {
        means.add(bins.index(iteration.begin_ns), iteration.duration_ns as f64 / 1e6);
    }
    means.values()
}

/// Milliseconds per iteration of each stage, where its first span of the iteration begins.
pub fn curves(timeline: &Timeline, lane: LaneId, bins: Bins) -> Vec<(String, Vec<Option<f64>>)> {
    let first = timeline.spans.partition_point(|span| (span.lane, span.begin_ns) < (lane, bins.begin_ns()));
    let spans = timeline.spans[first..].iter().take_while(|span| span.lane == lane);
    let mut stages: Vec<(NameId, Means, Sum)> = Vec::new();
    for span in spans.filter(|span| span.depth == 0 && span.iteration.is_some()) {
        let index = stages.iter().position(|(name, ..)| *name == span.name).unwrap_or_else(|| {
            stages.push((span.name, Means::default(), Sum::default()));
            stages.len() - 1
        });
        let (_, means, sum) = &mut stages[index];
        if sum.iteration != span.iteration {
            sum.close(means, bins);
            *sum = Sum { iteration: span.iteration, begin_ns: span.begin_ns, total_ns: 0 };
        }
        sum.total_ns += span.duration_ns;
    }
    let finished = stages.into_iter().map(|(name, mut means, sum)| {
        sum.close(&mut means, bins);
        (timeline.name(name).to_owned(), means.values())
    });
    finished.collect()
}

/// A stage's time in the iteration at hand: it may have several spans there.
#[derive(Default)]
struct Sum {
    iteration: Option<u64>,
    begin_ns: i64,
    total_ns: u64,
}

impl Sum {
    fn close(&self, means: &mut Means, bins: Bins) {
        if self.iteration.is_some() {
            means.add(bins.index(self.begin_ns), self.total_ns as f64 / 1e6);
        }
    }
}
