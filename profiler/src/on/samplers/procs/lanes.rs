//! Which threads work for a lane, so that they are shown by its whole name.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::on::hub::lock;

/// Lanes' names by thread. The process's, not the profiler's: a thread works for one lane at a time.
static LANES: Mutex<BTreeMap<u32, Vec<String>>> = Mutex::new(BTreeMap::new());

/// As long as it lives, the thread that made it is the lane's.
#[derive(Debug)]
pub(crate) struct LaneThread(u32);

impl LaneThread {
    pub(crate) fn enter(lane: &str) -> Self {
        let thread = dflash_sys::thread_id();
        lock(&LANES).entry(thread).or_default().push(lane.to_owned());
        Self(thread)
    }
}

impl Drop for LaneThread {
    fn drop(&mut self) {
        let mut lanes = lock(&LANES);
        if let Some(names) = lanes.get_mut(&self.0) {
            names.pop();
            if names.is_empty() {
                lanes.remove(&self.0);
            }
        }
    }
}

/// The lane that a thread is in.
pub(super) fn lane_of(thread: u32) -> Option<String> {
    lock(&LANES).get(&thread)?.last().cloned()
}

#[cfg(test)]
mod tests {
    use super::{LaneThread, lane_of};

    #[test]
    fn a_lane_within_a_lane() {
        let me = dflash_sys::thread_id();
        let outer = LaneThread::enter("outer");
        let inner = LaneThread::enter("inner");
        assert_eq!(lane_of(me).as_deref(), Some("inner"));
        drop(inner);
        assert_eq!(lane_of(me).as_deref(), Some("outer"));
        drop(outer);
        assert_eq!(lane_of(me), None);
    }
}
