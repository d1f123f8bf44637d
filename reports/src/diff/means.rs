//! Mean iterations of lanes, stage by stage, and which lane limits.

use super::side::{LaneMeans, Side};
use crate::stages::{TOTAL, is_wait};
use std::collections::HashMap;

/// Means of a lane over a side's runs.
pub(super) struct Means {
    pub rank: u32,
    pub lane: String,
    /// Mean iteration, nanoseconds.
    pub total: f64,
    /// The stages' parts in it.
    pub stages: Vec<(String, f64)>,
}

impl Means {
    /// Of the lanes whose iterations and totals all runs know.
    pub(super) fn all(side: &Side) -> Vec<Self> {
        let mut runs: HashMap<(u32, &str), Vec<&LaneMeans>> = HashMap::new();
        let lanes = side.runs.iter().flat_map(|run| &run.lanes);
        lanes.for_each(|lane| runs.entry((lane.rank, &lane.lane)).or_default().push(lane));
        let Some(first) = side.runs.first() else { return Vec::new() };
        let of = |lane: &LaneMeans| Self::of(runs.get(&(lane.rank, lane.lane.as_str()))?, side.runs.len());
        first.lanes.iter().filter_map(of).collect()
    }

    fn of(runs: &[&LaneMeans], count: usize) -> Option<Self> {
        let first = runs.first().filter(|_| runs.len() == count && runs.iter().all(|run| run.iterations > 0))?;
        let mut stages: Vec<(String, f64)> = Vec::new();
        let mut places = HashMap::new();
        for run in runs {
            let share = 1.0 / (run.iterations as f64 * count as f64);
            for (stage, sum) in &run.sums {
                let at = *places.entry(stage.as_str()).or_insert_with(|| {
                    stages.push((stage.clone(), 0.0));
                    stages.len() - 1
                });
                stages[at].1 += sum * share;
            }
        }
        let total = stages.iter().position(|(stage, _)| stage == TOTAL)?;
        let (_, total) = stages.remove(total);
        (!stages.is_empty()).then(|| Self { rank: first.rank, lane: first.lane.clone(), total, stages })
    }

    pub(super) fn id(&self) -> (u32, &str) {
        (self.rank, &self.lane)
    }

    fn waiting(&self) -> f64 {
        self.stages.iter().filter(|(stage, _)| is_wait(stage)).map(|(_, ns)| ns).sum()
    }
}

/// The lane that waits least; unknown if none of several lanes waits.
pub(super) fn limiting(lanes: &[Means]) -> Option<(u32, &str)> {
    if lanes.len() > 1 && lanes.iter().all(|lane| lane.stages.iter().all(|(stage, _)| !is_wait(stage))) {
        return None;
    }
    let share = |lane: &Means| if lane.total > 0.0 { lane.waiting() / lane.total } else { 1.0 };
    lanes.iter().min_by(|a, b| share(a).total_cmp(&share(b))).map(Means::id)
}
