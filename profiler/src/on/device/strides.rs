//! Which sites are timed on the device in some iterations only: two events cost a stage of 10 µs a good part of its time.

use std::collections::HashMap;

/// Times from which a mean is taken.
const FEW: u32 = 16;
/// The widest stride.
const WIDEST: u64 = 64;

/// The strides of one lane's sites.
///
/// A site whose mean device time is below the limit is timed in every k-th iteration: the smallest power of two for which
/// k × mean reaches it, at most 64. It is those iterations whose number is a multiple of k, so that all sites are timed
/// in the same ones. The mean is over 16 spans at a time; a stride becomes narrower only when the mean is 1.5 times what
/// that takes, so that none goes to and fro.
#[derive(Debug)]
pub(crate) struct Strides {
    limit_ns: u64,
    sites: HashMap<u32, Site>,
}

#[derive(Debug)]
struct Site {
    stride: u64,
    count: u32,
    sum_ns: u64,
}

/// A site's stride has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub stride: u8,
}

impl Strides {
    /// Stages below `limit_ns` get a stride; 0: none does.
    pub(crate) fn new(limit_ns: u64) -> Self {
        Self { limit_ns, sites: HashMap::new() }
    }

    /// A span of the site took so long on the device.
    pub(crate) fn observe(&mut self, number: u32, duration_ns: u64) -> Option<Change> {
        if self.limit_ns == 0 {
            return None;
        }
        let site = self.sites.entry(number).or_insert(Site { stride: 1, count: 0, sum_ns: 0 });
        site.count += 1;
        site.sum_ns = site.sum_ns.saturating_add(duration_ns);
        if site.count < FEW {
            return None;
        }
        let mean_ns = site.sum_ns / u64::from(site.count);
        (site.count, site.sum_ns) = (0, 0);
        let wanted = stride(self.limit_ns, mean_ns);
        let narrower = stride(self.limit_ns, mean_ns * 2 / 3);
        let next = if wanted > site.stride { wanted } else { narrower.min(site.stride) };
        (std::mem::replace(&mut site.stride, next) != next).then_some(Change { stride: next as u8 })
    }
}

fn stride(limit_ns: u64, mean_ns: u64) -> u64 {
    limit_ns.div_ceil(mean_ns.max(1)).min(WIDEST).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::{Change, Strides};

    fn observe(strides: &mut Strides, us: u64) -> Option<u8> {
        let changes: Vec<Change> = (0..16).filter_map(|_| strides.observe(7, us * 1_000)).collect();
        assert!(changes.len() < 2);
        changes.first().map(|change| change.stride)
    }

    #[test]
    fn short_stages_are_timed_less_often() {
        let mut strides = Strides::new(50_000);
        assert_eq!(observe(&mut strides, 60), None, "long enough");
        assert_eq!(observe(&mut strides, 30), Some(2));
        assert_eq!(observe(&mut strides, 6), Some(16));
        assert_eq!(observe(&mut strides, 0), Some(64));
        assert_eq!(observe(&mut strides, 20), Some(4));
        assert_eq!(observe(&mut strides, 400), Some(1));
        assert_eq!(Strides::new(0).observe(7, 1), None);
    }

    #[test]
    fn a_mean_at_the_edge_does_not_go_to_and_fro() {
        let mut strides = Strides::new(50_000);
        assert_eq!(observe(&mut strides, 49), Some(2));
        for us in [51, 49, 55, 48, 60] {
            assert_eq!(observe(&mut strides, us), None, "{us} µs");
        }
        assert_eq!(observe(&mut strides, 76), Some(1));
    }
}
