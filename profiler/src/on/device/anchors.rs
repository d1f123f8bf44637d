//! Anchors: the same moment on a device's clock and on the host's, taken on a stream that nothing else uses.

use super::fit::{DeviceMap, Point};
use crate::{DeviceError, DeviceEvent, DeviceStream};

/// Brackets of which the narrowest is the anchor.
const TRIES: usize = 8;
/// Longest wait for one of them, and for all.
const TRY_NS: i64 = 500_000;
const ALL_NS: i64 = 2_000_000;
/// The first anchors come quicker, to learn the device's rate: after a 16th, an 8th, … of the usual time.
const QUICK: u32 = 4;

/// Tells the host's time, nanoseconds of CLOCK_MONOTONIC.
pub(super) type Now<'a> = &'a dyn Fn() -> i64;

/// The anchors of one device.
#[derive(Debug)]
pub(super) struct Anchors {
    side: Box<dyn DeviceStream>,
    spare: Vec<Box<dyn DeviceEvent>>,
    last: Option<Taken>,
    next_ns: i64,
    every_ns: i64,
    quick: u32,
    pub map: DeviceMap,
}

/// An event, the host's time at it, and how far that may be off.
type Bracketed = (Box<dyn DeviceEvent>, i64, u64);

#[derive(Debug)]
struct Taken {
    event: Box<dyn DeviceEvent>,
    /// Nanoseconds since the first anchor's event, as a sum of differences.
    device_ns: i64,
    count: u64,
}

impl Anchors {
    pub(super) fn new(side: Box<dyn DeviceStream>, every_ns: i64) -> Self {
        let every_ns = every_ns.max(1);
        Self {
            side,
            spare: Vec::new(),
            last: None,
            next_ns: i64::MIN,
            every_ns,
            quick: QUICK,
            map: DeviceMap::default(),
        }
    }

    /// Takes an anchor if it is time. `None`: it is not, or the device has no time for it; the last one stays.
    pub(super) fn take(&mut self, now: Now<'_>) -> Result<Option<Point>, DeviceError> {
        let begin = now();
        if begin < self.next_ns {
            return Ok(None);
        }
        let wait = self.every_ns >> self.quick;
        self.next_ns = begin + wait;
        let Some((event, host_ns, half_ns)) = self.best_bracket(now)? else {
            return Ok(None);
        };
        self.quick = self.quick.saturating_sub(1);
        let (device_ns, count) = match &self.last {
            Some(last) => (last.device_ns + last.event.elapsed_ns(&*event)?, last.count + 1),
            None => (0, 1),
        };
        let point = Point { device_ns, host_ns, half_ns };
        self.map.learn(point, wait);
        self.spare.extend(self.last.replace(Taken { event, device_ns, count }).map(|last| last.event));
        Ok(Some(point))
    }

    /// Event, middle and half width of the narrowest bracket.
    fn best_bracket(&mut self, now: Now<'_>) -> Result<Option<Bracketed>, DeviceError> {
        let until = now() + ALL_NS;
        let mut best: Option<(Box<dyn DeviceEvent>, i64, i64)> = None;
        for _ in 0..TRIES {
            let mut event = match self.spare.pop() {
                Some(event) => event,
                None => self.side.new_event()?,
            };
            let bracket = self.bracket(&mut *event, until, now)?;
            let better = bracket.is_some_and(|(from, to)| best.as_ref().is_none_or(|(_, f, t)| to - from < t - f));
            let useless = match bracket {
                Some((from, to)) if better => best.replace((event, from, to)).map(|(event, _, _)| event),
                _ => Some(event),
            };
            self.spare.extend(useless);
            if now() >= until {
                break;
            }
        }
        Ok(best.map(|(event, from, to)| (event, from + (to - from) / 2, ((to - from) as u64).div_ceil(2))))
    }

    /// The host's time before the record and after the event was ready; `None`: that took too long.
    fn bracket(
        &self,
        event: &mut dyn DeviceEvent,
        until: i64,
        now: Now<'_>,
    ) -> Result<Option<(i64, i64)>, DeviceError> {
        let from = now();
        self.side.record(event)?;
        loop {
            let ready = event.ready()?;
            let to = now();
            if ready {
                return Ok(Some((from, to.max(from))));
            }
            if to > until || to - from > TRY_NS {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// How many anchors there have been.
    pub(super) fn count(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.count)
    }

    /// An event of the device on its clock, and how far it lies from the last anchor. Only after the first anchor.
    pub(super) fn place(&self, event: &dyn DeviceEvent) -> Result<Option<(i64, i64)>, DeviceError> {
        let Some(last) = &self.last else { return Ok(None) };
        let since = last.event.elapsed_ns(event)?;
        Ok(Some((last.device_ns + since, since.abs())))
    }
}
