//! Rows of iterations.csv as eight GPUs make them: 400 a second, with jitter to the nanosecond.

use dflash_timeline::IterationRow;
use dflash_timeline::iterations::{RESIDUE, TOTAL};

use crate::stream::Dice;

/// Name, mean host time in microseconds, and whether it has a device time.
type Stage = (&'static str, u64, bool);

const TARGET: [Stage; 6] = [
    ("target.wait", 9_000, false),
    ("target.upload", 1_200, true),
    ("target.forward", 140_000, true),
    ("target.pack", 600, true),
    ("target.copy", 2_500, true),
    ("target.put", 4_000, false),
];
const DRAFTER: [Stage; 11] = [
    ("drafter.wait", 9_000, false),
    ("drafter.upload", 1_000, true),
    ("drafter.anchors", 600, true),
    ("drafter.mask", 800, true),
    ("drafter.forward", 70_000, true),
    ("drafter.loss", 24_000, true),
    ("drafter.backward", 140_000, true),
    ("drafter.reduce", 10_000, true),
    ("drafter.clip", 4_000, true),
    ("drafter.step", 12_000, true),
    ("drafter.log", 200, false),
];
/// Simulated time before the first row, nanoseconds since 1970.
pub const START_NS: i64 = 1_795_996_799_000_000_000;

/// A lane that works without rest.
pub struct Worker {
    lane: String,
    device: String,
    stages: &'static [Stage],
    iteration: u64,
    /// When its next iteration begins.
    pub next_ns: i64,
}

impl Worker {
    /// Four target lanes, four drafter lanes.
    pub fn all() -> Vec<Self> {
        let worker = |n: u64| {
            let (kind, stages): (_, &[Stage]) = if n < 4 { ("target", &TARGET) } else { ("drafter", &DRAFTER) };
            let (lane, device) = (format!("{kind}:{}", n % 4), format!("cuda:{n}"));
            Self { lane, device, stages, iteration: 0, next_ns: START_NS + 1_234_567 * n as i64 }
        };
        (0..8).map(worker).collect()
    }

    /// The rows of its next iteration.
    pub fn iterate(&mut self, dice: &mut Dice) -> Vec<IterationRow> {
        let begin_ns = self.next_ns;
        let row = |stage: &str, start_ns: i64, host_ns: u64, device_ns: Option<u64>| IterationRow {
            lane: self.lane.clone(),
            device: self.device.clone(),
            iteration: self.iteration,
            stage: stage.to_owned(),
            start_ns,
            host_ns: Some(host_ns),
            device_ns,
            ..IterationRow::default()
        };
        let (mut at, mut covered, mut rows) = (begin_ns, 0, Vec::new());
        for (stage, mean, device) in self.stages {
            at += 60 + dice.below(200) as i64;
            let host_ns = jittered(*mean * 1000, *device, dice);
            let device_ns = device.then(|| host_ns - host_ns / 100 - dice.below(host_ns / 50));
            rows.push(row(stage, at, host_ns, device_ns));
            at += host_ns as i64;
            covered += host_ns;
        }
        at += 200 + dice.below(1_800) as i64;
        let total = (at - begin_ns) as u64;
        rows.push(row(RESIDUE, begin_ns, total - covered, None));
        rows.push(IterationRow { tokens: Some(14_000 + dice.below(2_385)), ..row(TOTAL, begin_ns, total, None) });
        self.iteration += 1;
        self.next_ns = at + 300 + dice.below(2_700) as i64;
        rows
    }
}

/// Work varies by about 3 %, waiting by a half: the sum of four throws is nearly normal.
fn jittered(mean: u64, works: bool, dice: &mut Dice) -> u64 {
    let width = if works { mean / 9 } else { mean };
    let throw: u64 = (0..4).map(|_| dice.below(width + 1)).sum();
    mean - width / 2 + throw / 4
}
