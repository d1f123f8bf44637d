//! Looking at what is not in memory any more: it is read beside the view, and taken when it is there.

use super::{Recording, RunSource};
use crate::source::past::{Reading, Stretch};
use crate::state::Look;

impl RunSource {
    /// Begins to read what `look` asks for and is not in memory; whether all of it is there.
    pub fn prepare(&mut self, look: &Look) -> bool {
        let Recording::Followed(tail, keep) = &self.recording else { return true };
        let most_ns = keep.fitting(tail.timeline());
        let Some(stretch) = Stretch::beyond(tail.timeline(), look, most_ns) else {
            self.past = None;
            return true;
        };
        if self.failed == Some(stretch) || self.past.as_ref().is_some_and(|past| past.holds(stretch)) {
            return true;
        }
        // One after the other: who runs through a recording asks for many.
        if self.reading.is_none() {
            match Reading::begin(&self.run, stretch, most_ns) {
                Ok(reading) => self.reading = Some(reading),
                Err(problem) => {
                    self.problems.push(problem);
                    return true;
                }
            }
        }
        false
    }

    /// Takes what was read meanwhile; whether there is something new to show. Where reading failed, what is in memory is
    /// shown, and why.
    pub fn arrive(&mut self) -> bool {
        let Some(reading) = self.reading.take_if(|reading| reading.is_done()) else { return false };
        self.take(reading);
        true
    }

    /// Waits for what a silent run says of itself.
    pub(in crate::source) fn hear(&mut self) {
        self.manifest.trouble = self.manifest.trouble.take().or_else(|| self.asking.settle());
    }

    /// Reads what `look` asks for, and waits for it, as for what a silent run says of itself.
    pub fn settle(&mut self, look: &Look) {
        self.hear();
        if !self.prepare(look)
            && let Some(reading) = self.reading.take()
        {
            self.take(reading);
        }
    }

    fn take(&mut self, reading: Reading) {
        let asked = reading.asked();
        match reading.end(self.timeline()) {
            Ok(past) => (self.past, self.failed) = (Some(past), None),
            Err(problem) => {
                (self.past, self.failed) = (None, Some(asked));
                self.problems.push(problem);
            }
        }
    }
}
