//! What a caching allocator does, charged to the stage in which it did it. Read on the lane's own thread between stages.
//!
//! Its counters are its device's. Where several lanes share a device each move is charged once, to the first stage that ends
//! behind it: at times another lane's than the one that made it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dflash_timeline::record::Severity;

use super::event::{Event, Moved, Remark};
use super::hub::bump;
use super::lane::{Current, UNWATCHED};
use crate::{AllocatorCounters, AllocatorStats, DeviceError};

/// The site of what lies between the stages; no span has it.
pub(crate) const RESIDUE_SITE: u32 = 0;

/// A reading younger than this is taken for the present one: nothing was allocated in between. Nanoseconds.
const FRESH_NS: u64 = 1_000;

impl Moved {
    /// Name and unit of the counter.
    pub(crate) fn counter(self, device: &str, stage: &str) -> (String, &'static str) {
        let (what, of_stage, unit) = match self {
            Self::DeviceAllocations => ("device_allocations", true, "count"),
            Self::DeviceFrees => ("device_frees", true, "count"),
            Self::Retries => ("retries", true, "count"),
            Self::OutOfMemory => ("out_of_memory", true, "count"),
            Self::Allocations => ("allocations", false, "count"),
            Self::Reserved => ("reserved", false, "bytes"),
            Self::Active => ("active", false, "bytes"),
        };
        let stage = if of_stage { format!(".{stage}") } else { String::new() };
        (format!("allocator.{device}.{what}{stage}"), unit)
    }
}

/// What lanes have been charged with of one device's allocator, all together.
#[derive(Debug, Default)]
pub(crate) struct Charged([AtomicU64; 4]);

impl Charged {
    /// With nothing so far: what the counters say already was there before the first lane.
    pub(crate) fn from(counters: &AllocatorCounters) -> Self {
        Self(in_order(counters).map(AtomicU64::new))
    }

    /// What nobody has been charged with yet of the counter that stands at `now`.
    fn take(&self, counter: usize, now: u64) -> u64 {
        now.saturating_sub(self.0[counter].fetch_max(now, Ordering::Relaxed))
    }
}

/// What only grows, in the order of [`MOVED`].
fn in_order(counters: &AllocatorCounters) -> [u64; 4] {
    [counters.device_allocations, counters.device_frees, counters.retries, counters.out_of_memory]
}

const MOVED: [Moved; 4] = [Moved::DeviceAllocations, Moved::DeviceFrees, Moved::Retries, Moved::OutOfMemory];

/// An allocator that a lane looks at.
#[derive(Debug)]
pub(crate) struct AllocatorWatch {
    stats: Box<dyn AllocatorStats>,
    charged: Arc<Charged>,
    last: AllocatorCounters,
    /// When it was read, ticks.
    at: u64,
    /// Allocations when the iteration began.
    begun: u64,
}

impl AllocatorWatch {
    /// `now`: what the allocator's counters say; `charged`: of its device.
    pub(crate) fn new(stats: Box<dyn AllocatorStats>, now: AllocatorCounters, charged: Arc<Charged>) -> Self {
        Self { stats, charged, last: now, at: 0, begun: 0 }
    }

    /// The counters before and now.
    fn look(&mut self) -> Result<(AllocatorCounters, AllocatorCounters), DeviceError> {
        let now = self.stats.counters()?;
        Ok((std::mem::replace(&mut self.last, now), now))
    }
}

impl Current {
    /// An iteration begins that is not bare. What moved since the last one that was not is no stage's.
    #[cold]
    pub(crate) fn allocator_begin(&mut self) {
        self.allocator_after_stage(RESIDUE_SITE);
        if let Some(watch) = &mut self.allocator {
            watch.begun = watch.last.allocations;
        }
    }

    /// A stage begins: what moved since the last one is the residue's.
    #[cold]
    pub(crate) fn allocator_before_stage(&mut self) {
        let now = self.clock.ticks();
        let fresh = self.clock.ticks_in(FRESH_NS);
        if self.allocator.as_ref().is_some_and(|watch| now.saturating_sub(watch.at) > fresh) {
            self.allocator_after_stage(RESIDUE_SITE);
        }
    }

    /// A stage has ended.
    #[cold]
    pub(crate) fn allocator_after_stage(&mut self, site: u32) {
        let Some((before, now)) = self.look_at_allocator() else { return };
        let at = self.clock.ticks();
        for (counter, (before, now)) in in_order(&before).into_iter().zip(in_order(&now)).enumerate() {
            // What this lane has not seen yet another may have been charged with.
            let charged =
                self.allocator.as_ref().filter(|_| now > before).map(|watch| watch.charged.take(counter, now));
            if let Some(value) = charged.filter(|&value| value > 0) {
                self.emit(Event::Allocator { what: MOVED[counter], site, at, value });
            }
        }
    }

    /// An iteration that is not bare has ended.
    #[cold]
    pub(crate) fn allocator_end(&mut self) {
        self.allocator_after_stage(RESIDUE_SITE);
        let Some(watch) = &self.allocator else { return };
        let (now, at) = (watch.last, watch.at);
        let allocations = now.allocations.saturating_sub(watch.begun);
        let readings = [
            (Moved::Allocations, allocations),
            (Moved::Reserved, now.reserved_bytes),
            (Moved::Active, now.active_bytes),
        ];
        for (what, value) in readings {
            self.emit(Event::Allocator { what, site: RESIDUE_SITE, at, value });
        }
    }

    fn look_at_allocator(&mut self) -> Option<(AllocatorCounters, AllocatorCounters)> {
        let asked = self.clock.ticks();
        let watch = self.allocator.as_mut()?;
        let looked = watch.look();
        watch.at = self.clock.ticks();
        bump(&self.shared.spent, watch.at.saturating_sub(asked));
        looked.map_err(|error| self.allocator_failed(&error)).ok()
    }

    /// It is not asked again.
    #[cold]
    fn allocator_failed(&mut self, error: &DeviceError) {
        (self.allocator, self.watched) = (None, UNWATCHED);
        let lane = &self.shared.name;
        let text = format!("lane {lane}: the allocator is no longer looked at, since it has no counters: {error}");
        self.hub.remark(Remark::Mark { severity: Severity::Warning, at: self.clock.ticks(), text });
    }
}
