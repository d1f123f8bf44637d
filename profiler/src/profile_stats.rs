//! Named accumulators, for the times that no span takes.

use std::time::Duration;

use crate::Stat;

/// Adds up times by name. A loop that may run without takes an `Option<ProfileStats>`; a lane has one of its own, see
/// [`add_time`](crate::add_time).
///
/// ```
/// # use dflash_profiler::ProfileStats;
/// # use std::time::Duration;
/// let mut stats = ProfileStats::default();
/// stats.add_time("evaluate", Duration::from_millis(30));
/// stats.add_time("evaluate", Duration::from_millis(10));
/// assert_eq!(stats.count("evaluate"), 2);
/// assert_eq!(stats.mean("evaluate"), Some(Duration::from_millis(20)));
/// assert_eq!(stats.take().len(), 1);
/// assert_eq!(stats.mean("evaluate"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProfileStats(Vec<Stat>);

impl ProfileStats {
    /// Adds a time to a name.
    pub fn add_time(&mut self, name: &'static str, duration: Duration) {
        match self.0.iter_mut().find(|stat| stat.name == name) {
            Some(stat) => {
                stat.count += 1;
                stat.total = stat.total.saturating_add(duration);
            }
            None => self.0.push(Stat { name, count: 1, total: duration }),
        }
    }

    /// How many times a name has got.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.find(name).map_or(0, |stat| stat.count)
    }

    /// The sum of a name's times.
    #[must_use]
    pub fn total(&self, name: &str) -> Duration {
        self.find(name).map_or(Duration::ZERO, |stat| stat.total)
    }

    /// The mean of a name's times; `None` if it has none.
    #[must_use]
    pub fn mean(&self, name: &str) -> Option<Duration> {
        let stat = self.find(name)?;
        (stat.count > 0).then(|| Duration::from_nanos((stat.total.as_nanos() / u128::from(stat.count)) as u64))
    }

    /// Every name, in the order of first use.
    #[must_use]
    pub fn stats(&self) -> &[Stat] {
        &self.0
    }

    /// Every name, in the order of first use; all begin again at 0.
    pub fn take(&mut self) -> Vec<Stat> {
        std::mem::take(&mut self.0)
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.0.clear();
    }

    fn find(&self, name: &str) -> Option<&Stat> {
        self.0.iter().find(|stat| stat.name == name)
    }
}
