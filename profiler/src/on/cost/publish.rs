//! The costs as counters: `profiler.cost.<lane>.low`, `.high` and `.calls`, in percent of an iteration.

use std::sync::atomic::Ordering;

use super::super::feed::Feed;
use super::super::hub::Hub;
use super::super::output::Output;

/// Writes what is known of each lane since the last time. What is not known is not written.
pub(crate) fn publish(hub: &Hub, feeds: &mut [Feed], out: &mut Output) {
    let Some(costs) = hub.call_costs.get() else { return };
    let time_ns = dflash_sys::monotonic_ns();
    for feed in feeds {
        let lane = &feed.shared.name;
        let mut percent = |what, share: f64| {
            out.own_sample(&format!("profiler.cost.{lane}.{what}"), "%", time_ns, share * 100.0);
        };
        let spent = hub.clock.duration(feed.shared.spent.load(Ordering::Relaxed));
        if let Some(share) = feed.cost.calls(costs, u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)) {
            percent("calls", share);
        }
        if feed.cost.take_unpublished()
            && let Some((low, high)) = feed.cost.interval()
        {
            percent("low", low);
            percent("high", high);
        }
    }
}
