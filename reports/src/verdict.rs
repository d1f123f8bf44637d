//! Which side limits the pipeline: the lane that waits least, while the others wait for it.
//!
//! A stage `*.wait` waits for input and a stage `*.put` waits for room. Lanes of one role (`target:0`, `target:1`)
//! are judged together, by the mean of their shares.

use crate::stages::{LaneTable, ROLES, StageTable};
use serde::Serialize;
use std::fmt;

/// Waiting below this share of the time is not worth a verdict.
const WORTH_SAYING: f64 = 0.05;
/// A lane that waits longer than this itself cannot be the one that limits.
const BUSY_ENOUGH: f64 = 0.20;

/// Which side limits, with its evidence. Prints as one sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Nothing to judge by: fewer than two roles, or no lane has a stage that waits.
    Unknown,
    /// Nobody waits for long.
    Balanced {
        /// The longest wait.
        longest: Wait,
    },
    /// One role limits.
    Limits {
        /// The lane, or the role where it has several lanes.
        who: String,
        /// Whether `who` stands for several lanes.
        several: bool,
        /// Who waits for it: of those who wait long, the nearest in the pipeline.
        evidence: Wait,
    },
    /// Everybody waits: bursts, or lanes that take turns on one device.
    Mixed {
        /// The role that waits least.
        least: Wait,
        /// The role that waits most.
        most: Wait,
    },
}

/// Time that a role spends waiting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// The lane, or the role where it has several lanes.
    pub who: String,
    /// Whether `who` stands for several lanes.
    pub several: bool,
    /// What for.
    pub reason: Reason,
    /// Share of its time, 0 to 1.
    pub share: f64,
}

/// What a lane waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Stages `*.wait`.
    Input,
    /// Stages `*.put`.
    Room,
}

struct Role<'a> {
    name: &'a str,
    lanes: Vec<&'a LaneTable>,
    input: f64,
    room: f64,
}

/// Judges which side limits.
#[must_use]
pub fn verdict(table: &StageTable) -> Verdict {
    let roles = roles(table);
    if roles.len() < 2 || roles.iter().all(|role| !role.has_waits()) {
        return Verdict::Unknown;
    }
    let waiting = |a: &&Role<'_>, b: &&Role<'_>| a.waiting().total_cmp(&b.waiting());
    let (Some(least), Some(most)) = (roles.iter().min_by(waiting), roles.iter().max_by(waiting)) else {
        return Verdict::Unknown;
    };
    if most.waiting() < WORTH_SAYING {
        return Verdict::Balanced { longest: most.longest() };
    }
    // The loader waits for room whoever limits: a neighbour's wait says more.
    let others = roles.iter().filter(|role| role.name != least.name);
    let waits = others.map(|role| (role.distance(least), role.wait_for(least)));
    let worth = waits.filter(|(_, wait)| wait.share >= WORTH_SAYING);
    let nearest = worth.min_by(|(a, x), (b, y)| a.cmp(b).then(y.share.total_cmp(&x.share)));
    match nearest {
        Some((_, evidence)) if least.waiting() <= BUSY_ENOUGH => {
            Verdict::Limits { who: least.title(), several: least.lanes.len() > 1, evidence }
        }
        _ => Verdict::Mixed { least: least.longest(), most: most.longest() },
    }
}

fn roles(table: &StageTable) -> Vec<Role<'_>> {
    let mut roles: Vec<Role<'_>> = Vec::new();
    for lane in table.lanes.iter().filter(|lane| lane.iterations > 0) {
        match roles.iter_mut().find(|role| role.name == lane.role()) {
            Some(role) => role.lanes.push(lane),
            None => roles.push(Role { name: lane.role(), lanes: vec![lane], input: 0.0, room: 0.0 }),
        }
    }
    for role in &mut roles {
        let mean = |suffix| role.lanes.iter().map(|l| l.share_of(suffix)).sum::<f64>() / role.lanes.len() as f64;
        (role.input, role.room) = (mean(".wait"), mean(".put"));
    }
    roles
}

impl Role<'_> {
    fn waiting(&self) -> f64 {
        self.input + self.room
    }

    fn has_waits(&self) -> bool {
        let waits = |name: &str| name.ends_with(".wait") || name.ends_with(".put");
        self.lanes.iter().any(|lane| lane.rows.iter().any(|row| waits(&row.stage)))
    }

    fn title(&self) -> String {
        match self.lanes.as_slice() {
            [lane] => lane.lane.clone(),
            _ => format!("{}s", self.name),
        }
    }

    fn wait(&self, reason: Reason) -> Wait {
        let share = if reason == Reason::Input { self.input } else { self.room };
        Wait { who: self.title(), several: self.lanes.len() > 1, reason, share }
    }

    fn longest(&self) -> Wait {
        self.wait(if self.input > self.room { Reason::Input } else { Reason::Room })
    }

    /// Hand-offs between two roles; lanes of unknown roles are far from all.
    fn distance(&self, other: &Role<'_>) -> usize {
        let at = |role: &Role<'_>| ROLES.iter().position(|name| *name == role.name);
        at(self).zip(at(other)).map_or(usize::MAX, |(a, b)| a.abs_diff(b))
    }

    /// Who stands before the limiting role waits for room, who stands after it for input.
    fn wait_for(&self, limiting: &Role<'_>) -> Wait {
        let at = |role: &Role<'_>| ROLES.iter().position(|name| *name == role.name);
        match (at(self), at(limiting)) {
            (Some(own), Some(limit)) if own < limit => self.wait(Reason::Room),
            (Some(_), Some(_)) => self.wait(Reason::Input),
            _ => self.longest(),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.several { "wait" } else { "waits" };
        let reason = if self.reason == Reason::Input { "input" } else { "room" };
        write!(f, "{} {verb} {:.0} % of the time for {reason}", self.who, self.share * 100.0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(f, "which side limits is unknown: no two kinds of lanes record *.wait or *.put"),
            Self::Balanced { longest } => write!(f, "no side limits: {longest}, the others less"),
            Self::Limits { who, several: true, evidence } => write!(f, "{who} limit: {evidence}"),
            Self::Limits { who, several: false, evidence } => write!(f, "{who} limits: {evidence}"),
            Self::Mixed { least, most } => write!(f, "no side limits throughout: {least}, {most}"),
        }
    }
}
