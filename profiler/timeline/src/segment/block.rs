//! A block's end: its accounts, its frame, its one write.

use super::SegmentWriter;
use crate::error::Result;
use crate::format::{self, HEADER, Header};
use crate::record::{OpenSpan, Totals};

impl SegmentWriter {
    pub(super) fn account(&mut self, open: &[OpenSpan], totals: Totals) -> Totals {
        let local: Vec<OpenSpan> = open
            .iter()
            .map(|o| OpenSpan { name: self.local_name(o.name), lane: self.local_lane(o.lane), ..*o })
            .collect();
        self.block.open(&local);
        let totals = Totals { written: self.written + self.pending, ..totals };
        self.block.totals(&totals);
        if let Some((first_kept, expired)) = self.files.expired() {
            self.block.expired(first_kept, &expired);
        }
        totals
    }

    #[cold]
    pub(super) fn write_block(&mut self, end: bool) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let wrote = self.frame_and_write(end, pending);
        self.begin_block();
        wrote?;
        self.sequence = self.sequence.wrapping_add(1);
        self.written += pending;
        Ok(())
    }

    fn frame_and_write(&mut self, end: bool, records_of_lanes: u64) -> Result<()> {
        if self.files.make_room(HEADER + self.block.length())? {
            // A segment tells the date by itself, and what is about to be deleted is said before it is.
            self.first_anchor.iter().for_each(|anchor| self.block.old_anchor(anchor));
            if let Some((first_kept, expired)) = self.files.expired() {
                self.block.expired(first_kept, &expired);
            }
        }
        let payload = self.block.payload();
        let length = payload.parts.iter().map(|part| part.len()).sum::<usize>();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let header = Header {
            end,
            stream: self.files.first as u8,
            rank: self.rank,
            sequence: self.sequence,
            length,
            raw_length: length,
            records: payload.records,
            first_ns: payload.first_ns,
            last_ns: payload.last_ns,
            ..Header::default()
        };
        let head = format::head(&header, &payload.parts);
        let [texts, tags, rest] = payload.parts;
        self.files.write([&head, texts, tags, rest], records_of_lanes)
    }
}
