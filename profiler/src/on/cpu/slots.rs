//! What a signal handler may look at: one slot a lane, of plain atomics that stay where they are for ever.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dflash_sys::sampling::{Label, set_thread_tag};

use super::helpers::{self, Hint};
use crate::on::hub::lock;
use crate::on::open::OpenSpans;

/// Lanes at once that samples can be joined to; further ones record their spans as ever.
const SLOTS: usize = 256;

static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// Slots that were ever used lie below this.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Slots that are free again.
static FREE: Mutex<Vec<Place>> = Mutex::new(Vec::new());
/// Name and device of every lane that ever was, by number - 1.
static LANES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// One lane's. Aligned, so that no lane writes to a cache line that another one reads.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Slot {
    /// The lane's number; 0: the slot is free.
    lane: AtomicU32,
    /// The lane's device, as `helpers` counts them.
    device: AtomicU32,
    /// The thread that is in the lane, and what is left of its name; 0: none is.
    tid: AtomicU32,
    thread: AtomicU32,
    /// The iteration that runs, plus 1.
    iteration: AtomicU64,
    open: OpenSpans,
}

/// Where a slot is; `tag` is 0 beyond the table, where no handler looks.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: &'static Slot,
    tag: u32,
}

/// A slot as its lane has it; given back when dropped. It is the lane's open spans.
#[derive(Debug)]
pub(crate) struct LaneSlot(Place);

impl LaneSlot {
    pub(crate) fn claim(lane: &str, device: &str) -> Self {
        let place = lock(&FREE).pop().unwrap_or_else(new_place);
        place.slot.device.store(helpers::device_number(device), Ordering::Relaxed);
        place.slot.lane.store(number(lane, device), Ordering::Release);
        Self(place)
    }

    /// The lane's open spans, without the way over this slot.
    pub(crate) fn open(&self) -> &'static OpenSpans {
        &self.0.slot.open
    }

    /// The calling thread is in the lane from now on.
    pub(crate) fn enter(&self) {
        let slot = self.0.slot;
        let name = dflash_sys::current_thread_name();
        slot.thread.store(helpers::name_number(&name), Ordering::Relaxed);
        slot.tid.store(dflash_sys::thread_id(), Ordering::Release);
        set_thread_tag(self.0.tag);
    }

    /// No thread is in the lane any more, or its thread is in another one.
    pub(crate) fn rest(&self) {
        self.0.slot.tid.store(0, Ordering::Release);
        self.0.slot.thread.store(0, Ordering::Relaxed);
    }

    /// The iteration that runs.
    pub(crate) fn set_iteration(&self, iteration: Option<u64>) {
        self.0.slot.iteration.store(iteration.map_or(0, |number| number + 1), Ordering::Relaxed);
    }
}

/// The calling thread is in no lane any more.
pub(crate) fn leave() {
    set_thread_tag(0);
}

impl Deref for LaneSlot {
    type Target = OpenSpans;

    #[inline]
    fn deref(&self) -> &OpenSpans {
        &self.0.slot.open
    }
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        self.rest();
        self.0.slot.lane.store(0, Ordering::Release);
        self.set_iteration(None);
        self.0.slot.open.cut(0);
        lock(&FREE).push(self.0);
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            lane: AtomicU32::new(0),
            device: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            iteration: AtomicU64::new(0),
            open: OpenSpans::new(),
        }
    }

    /// What the lane works on. Any thread, handlers too.
    fn copy(&self, label: &mut Label) {
        label.lane = self.lane.load(Ordering::Acquire);
        label.iteration = self.iteration.load(Ordering::Relaxed);
        label.depth = self.open.copy(&mut label.spans, &mut label.begins) as u32;
    }

    /// Whether a thread with this hint works for the lane now.
    fn is_helped_by(&self, hint: Hint) -> bool {
        self.tid.load(Ordering::Acquire) != 0
            && match hint {
                Hint::Nothing => false,
                Hint::Backward { device } => {
                    self.device.load(Ordering::Relaxed) == device && self.open.any(helpers::is_backward)
                }
                Hint::Name(name) => self.thread.load(Ordering::Relaxed) == name,
            }
    }
}

/// Fills in what a thread works on: its own lane, or the one lane that it helps; between several, nothing is known. Runs
/// in the handler.
pub(crate) fn label(tag: u32, hint: u64, label: &mut Label) {
    let own = (tag as usize).checked_sub(1).and_then(|place| TABLE.get(place));
    if let Some(slot) = own.or_else(|| only(|slot| slot.is_helped_by(Hint::unpack(hint)))) {
        slot.copy(label);
    }
}

/// What a thread that did not answer works on.
pub(crate) fn label_of_thread(tid: u32, hint: u64) -> Label {
    let mut label = Label::NONE;
    let own = only(|slot| slot.tid.load(Ordering::Acquire) == tid);
    if let Some(slot) = own.or_else(|| only(|slot| slot.is_helped_by(Hint::unpack(hint)))) {
        slot.copy(&mut label);
    }
    label
}

/// The one slot in use for which it holds.
fn only(holds: impl Fn(&Slot) -> bool) -> Option<&'static Slot> {
    let mut found = TABLE.iter().take(USED.load(Ordering::Acquire)).filter(|slot| holds(slot));
    found.next().filter(|_| found.next().is_none())
}

/// Name and device of a lane, by the number in a label.
pub(crate) fn lane(number: u32) -> Option<(String, String)> {
    lock(&LANES).get((number as usize).checked_sub(1)?).cloned()
}

fn number(lane: &str, device: &str) -> u32 {
    let mut lanes = lock(&LANES);
    let place = lanes.iter().position(|(l, d)| l == lane && d == device).unwrap_or_else(|| {
        lanes.push((lane.to_owned(), device.to_owned()));
        lanes.len() - 1
    });
    place as u32 + 1
}

/// A slot that was never used. Beyond the table it is leaked: its lane gives it back to the free ones.
fn new_place() -> Place {
    let next = USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| (used < SLOTS).then_some(used + 1));
    match next.ok().and_then(|place| Some((place, TABLE.get(place)?))) {
        Some((place, slot)) => Place { slot, tag: place as u32 + 1 },
        None => Place { slot: Box::leak(Box::new(Slot::new())), tag: 0 },
    }
}
