//! Where a change of an iteration's time comes from.
//!
//! Medians do not add up; means do. On each lane Δtotal = Σ Δstage, the residue among the stages, and waiting is
//! counted apart from work. What decides is the lane that limits: the one that waits least. On the others a change of
//! work turns into waiting, so a longer wait behind a faster stage is good news.

use super::means::{Means, limiting};
use super::side::Side;
use crate::stages::is_wait;
use serde::Serialize;
use std::collections::HashMap;

/// Stages that a lane's sentence names.
const NAMED: usize = 3;

/// Where the change of a lane's iterations comes from. Means over the iterations that count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneChange {
    /// Process of a multi-process run.
    pub rank: u32,
    /// The lane.
    pub lane: String,
    /// Whether it is the one that limits, on side A and B.
    pub limits: (bool, bool),
    /// Mean iteration of A and B, nanoseconds.
    pub total_ns: (f64, f64),
    /// Change of the stages that work and of the residue.
    pub work_ns: f64,
    /// Change of the stages that wait for input or room.
    pub waiting_ns: f64,
    /// Stage by stage, the largest change first. They add up to the total's change.
    pub parts: Vec<PartChange>,
    /// The same in words.
    pub says: String,
}

/// One stage's part in the change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartChange {
    /// The stage, `residue`, or `not accounted for`.
    pub stage: String,
    /// Whether it waits.
    pub waits: bool,
    /// Its mean over all iterations of A, nanoseconds.
    pub a_ns: f64,
    /// The same of B.
    pub b_ns: f64,
}

impl PartChange {
    /// What it adds to the total's change, nanoseconds.
    #[must_use]
    pub fn change_ns(&self) -> f64 {
        self.b_ns - self.a_ns
    }
}

/// Attributes the change of every lane that both sides have, the limiting ones first.
pub(super) fn attribute(a: &Side, b: &Side, floor_ns: f64) -> Vec<LaneChange> {
    let (of_a, of_b) = (Means::all(a), Means::all(b));
    let (limits_a, limits_b) = (limiting(&of_a), limiting(&of_b));
    let others: HashMap<(u32, &str), &Means> = of_b.iter().map(|means| (means.id(), means)).collect();
    let mut changes: Vec<LaneChange> = Vec::new();
    for mine in &of_a {
        let Some(other) = others.get(&mine.id()) else { continue };
        let limits = (limits_a == Some(mine.id()), limits_b == Some(mine.id()));
        changes.push(LaneChange::of(mine, other, limits));
    }
    let slowest = changes.iter().max_by(|x, y| x.work_ns.total_cmp(&y.work_ns)).filter(|lane| lane.work_ns >= floor_ns);
    let said: Vec<String> = changes.iter().map(|change| change.say(slowest, floor_ns)).collect();
    changes.iter_mut().zip(said).for_each(|(change, says)| change.says = says);
    changes.sort_by_key(|change| std::cmp::Reverse(change.limits.1 as u8 + change.limits.0 as u8));
    changes
}

impl LaneChange {
    fn of(a: &Means, b: &Means, limits: (bool, bool)) -> Self {
        let mut of_b: HashMap<&str, f64> = b.stages.iter().map(|(stage, ns)| (stage.as_str(), *ns)).collect();
        let part = |stage: &str, a_ns, b_ns| PartChange { stage: stage.to_owned(), waits: is_wait(stage), a_ns, b_ns };
        let mut parts: Vec<PartChange> =
            a.stages.iter().map(|(stage, ns)| part(stage, *ns, of_b.remove(stage.as_str()).unwrap_or(0.0))).collect();
        let only_b = b.stages.iter().filter(|(stage, _)| of_b.contains_key(stage.as_str()));
        parts.extend(only_b.map(|(stage, ns)| part(stage, 0.0, *ns)));
        let rest = |means: &Means| means.total - means.stages.iter().map(|(_, ns)| ns).sum::<f64>();
        // Sums of floats are off by less than a nanosecond; more is time that no row stands for.
        if rest(a).abs() > 1.0 || rest(b).abs() > 1.0 {
            let stage = "not accounted for".to_owned();
            parts.push(PartChange { stage, waits: false, a_ns: rest(a), b_ns: rest(b) });
        }
        parts.sort_by(|x, y| y.change_ns().abs().total_cmp(&x.change_ns().abs()));
        let sum = |waits| parts.iter().filter(|part| part.waits == waits).map(PartChange::change_ns).sum();
        let (work_ns, waiting_ns) = (sum(false), sum(true));
        let (rank, lane, total_ns) = (a.rank, a.lane.clone(), (a.total, b.total));
        Self { rank, lane, limits, total_ns, work_ns, waiting_ns, parts, says: String::new() }
    }

    /// The lane's name, with its rank if that is not 0.
    fn title(&self) -> String {
        let lane = crate::text::harmless(&self.lane);
        if self.rank == 0 { lane } else { format!("{lane}, rank {}", self.rank) }
    }

    fn say(&self, slowest: Option<&Self>, floor_ns: f64) -> String {
        let role = match self.limits {
            (true, true) => " (limits)",
            (true, false) => " (limited A)",
            (false, true) => " (limits B)",
            (false, false) => "",
        };
        let change = self.total_ns.1 - self.total_ns.0;
        let large = |part: &&PartChange| part.change_ns().abs() >= floor_ns;
        let named: Vec<String> = self.parts.iter().filter(large).take(NAMED).map(named).collect();
        let parts = if named.is_empty() { "no stage by more than the floor".to_owned() } else { named.join(", ") };
        let sums = format!("work {}, waiting {}", ms(self.work_ns), ms(self.waiting_ns));
        let wait = self.say_wait(slowest, floor_ns).map_or_else(String::new, |text| format!("; {text}"));
        format!("{}{role}: mean iteration {} = {sums}: {parts}{wait}", self.title(), ms(change))
    }

    /// Why it waits longer.
    fn say_wait(&self, slowest: Option<&Self>, floor_ns: f64) -> Option<String> {
        if self.waiting_ns < floor_ns {
            return None;
        }
        if self.work_ns <= -floor_ns {
            let fastest =
                self.parts.iter().filter(|p| !p.waits).min_by(|x, y| x.change_ns().total_cmp(&y.change_ns()))?;
            let stage = crate::text::harmless(&fastest.stage);
            return Some(format!("it waits longer because {stage} got faster: good news"));
        }
        let slowest = slowest.filter(|other| (other.rank, &other.lane) != (self.rank, &self.lane))?;
        let part = slowest.parts.iter().find(|part| !part.waits)?;
        Some(format!("it waits longer for {} ({})", slowest.title(), named(part)))
    }
}

fn named(part: &PartChange) -> String {
    format!("{} {}", crate::text::harmless(&part.stage), ms(part.change_ns()))
}

fn ms(ns: f64) -> String {
    let text = format!("{:+.3} ms", ns / 1e6);
    if text == "-0.000 ms" { "+0.000 ms".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::attribute;
    use crate::diff::side::{LaneMeans, RunSeries, Side};

    const MS: f64 = 1e6;

    fn side(lanes: &[(&str, &[(&str, f64)])]) -> Side {
        let lane = |(name, stages): &(&str, &[(&str, f64)])| {
            let total = stages.iter().map(|(_, ms)| ms).sum::<f64>();
            let sums = stages.iter().copied().chain([("total", total)]);
            let sums = sums.map(|(stage, ms)| (stage.to_owned(), ms * MS * 10.0)).collect();
            LaneMeans { rank: 0, lane: (*name).to_owned(), iterations: 10, sums }
        };
        Side::of(vec![RunSeries { lanes: lanes.iter().map(lane).collect(), ..RunSeries::default() }])
    }

    #[test]
    fn a_longer_wait_behind_a_faster_stage_is_good_news() {
        let drafter: (&str, &[(&str, f64)]) = ("drafter:0", &[("drafter.wait", 0.1), ("drafter.backward", 20.0)]);
        let a = side(&[("target:0", &[("target.forward", 10.0), ("target.put", 10.1)]), drafter]);
        let b = side(&[("target:0", &[("target.forward", 6.0), ("target.put", 14.1)]), drafter]);
        let changes = attribute(&a, &b, 50_000.0);
        assert_eq!(changes[0].lane, "drafter:0", "the lane that limits stands first");
        assert_eq!(changes[0].limits, (true, true));
        assert_eq!(
            changes[1].says,
            "target:0: mean iteration +0.000 ms = work -4.000 ms, waiting +4.000 ms: target.forward -4.000 ms, \
             target.put +4.000 ms; it waits longer because target.forward got faster: good news"
        );
    }

    #[test]
    fn a_longer_wait_for_a_slower_lane_names_it() {
        let target: &[(&str, f64)] = &[("target.forward", 10.0), ("target.put", 10.1)];
        let a = side(&[("target:0", target), ("drafter:0", &[("drafter.wait", 0.1), ("drafter.backward", 20.0)])]);
        let target: &[(&str, f64)] = &[("target.forward", 10.0), ("target.put", 15.1)];
        let b = side(&[("target:0", target), ("drafter:0", &[("drafter.wait", 0.1), ("drafter.backward", 25.0)])]);
        let changes = attribute(&a, &b, 50_000.0);
        assert!(changes[1].says.ends_with("it waits longer for drafter:0 (drafter.backward +5.000 ms)"), "{changes:?}");
    }

    #[test]
    fn the_parts_add_up_to_the_total_also_with_new_and_unknown_time() {
        let a = side(&[("d", &[("d.loss", 3.0), ("residue", 0.2)])]);
        let mut b = side(&[("d", &[("d.loss", 2.0), ("d.mask", 4.0), ("residue", 0.1)])]);
        b.runs[0].lanes[0].sums.last_mut().unwrap_or(&mut (String::new(), 0.0)).1 += 30.0 * MS;
        let change = &attribute(&a, &b, 50_000.0)[0];
        let sum: f64 = change.parts.iter().map(super::PartChange::change_ns).sum();
        assert!((sum - (change.total_ns.1 - change.total_ns.0)).abs() < 1.0, "{change:?}");
        assert!((sum - (change.work_ns + change.waiting_ns)).abs() < 1.0);
        assert_eq!(change.parts.iter().filter(|part| part.stage == "not accounted for").count(), 1);
    }
}
