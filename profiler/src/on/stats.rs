//! ProfileStats: what a lane's stages cost since somebody last asked. Kept by the lane's own thread, so that nothing a
//! full ring drops is missing here.

use std::time::Duration;

use dflash_timeline::record::Kind;

use super::clock::Clock;
use super::site;
use crate::{ProfileStats, Stat};

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ticks: u64,
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// Place in `stages` by site, plus 1; 0: not seen.
    places: Vec<u32>,
    /// In order of first use: site, sum, and what the running iteration adds when it ends.
    stages: Vec<(u32, Sum, Sum)>,
    total: Sum,
    /// What no span took.
    added: ProfileStats,
}

impl Stats {
    /// A stage of the running iteration ended.
    #[inline]
    pub(crate) fn add(&mut self, site: u32, ticks: u64) {
        let place = self.places.get(site as usize).copied().unwrap_or(0);
        let place = if place == 0 { self.first_use(site) } else { place };
        if let Some((_, _, running)) = self.stages.get_mut(place as usize - 1) {
            running.count += 1;
            running.ticks += ticks;
        }
    }

    #[cold]
    fn first_use(&mut self, site: u32) -> u32 {
        let index = site as usize;
        self.places.resize(self.places.len().max(index + 1), 0);
        self.stages.push((site, Sum::default(), Sum::default()));
        self.places[index] = self.stages.len() as u32;
        self.places[index]
    }

    /// The running iteration ended. Only training counts: other kinds are set apart, never averaged in.
    pub(crate) fn end_iteration(&mut self, kind: Kind, ticks: u64) {
        let counts = kind == Kind::Train;
        if counts {
            self.total.count += 1;
            self.total.ticks += ticks;
        }
        for (_, sum, running) in &mut self.stages {
            let added = std::mem::take(running);
            if counts {
                sum.count += added.count;
                sum.ticks += added.ticks;
            }
        }
    }

    /// Adds a time that no span took.
    pub(crate) fn add_time(&mut self, name: &'static str, duration: Duration) {
        self.added.add_time(name, duration);
    }

    /// Stages in order of first use, what was added, then `residue`, then `total`; all begin again at 0.
    pub(crate) fn take(&mut self, clock: &Clock) -> Vec<Stat> {
        let added = self.added.take();
        let total = std::mem::take(&mut self.total);
        if total.count == 0 {
            return added;
        }
        let stat = |name, sum: Sum| Stat { name, count: sum.count, total: clock.duration(sum.ticks) };
        let taken = self.stages.iter_mut().map(|(site, sum, _)| (*site, std::mem::take(sum)));
        let used: Vec<(u32, Sum)> = taken.filter(|(_, sum)| sum.count > 0).collect();
        let covered: u64 = used.iter().map(|(_, sum)| sum.ticks).sum();
        let residue = Sum { count: total.count, ticks: total.ticks.saturating_sub(covered) };
        let mut stats: Vec<Stat> = used.into_iter().map(|(site, sum)| stat(site::name(site), sum)).collect();
        stats.extend(added);
        stats.extend([stat("residue", residue), stat("total", total)]);
        stats
    }
}
