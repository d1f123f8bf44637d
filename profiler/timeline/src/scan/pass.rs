//! Passing by blocks in which nothing is looked for: of other times, or without a text.

use super::{Found, Segment, TAIL};
use crate::decode::PADDING;
use crate::error::Result;
use crate::format::{self, HEADER, Header, VERSION};
use crate::part::Window;

/// Bytes of a block that are read for its texts.
const TEXTS: usize = 8 << 10;

impl Segment {
    /// Steps from block to block as long as `early` says so of a header, or `lacks` of a header and the payload's first
    /// bytes, with padding.
    pub(crate) fn pass(
        &mut self,
        early: impl Fn(&Header) -> bool,
        lacks: impl Fn(&Header, &[u8]) -> bool,
    ) -> Result<()> {
        let (mut head, mut bytes, length) = ([0; HEADER], vec![0; TEXTS + PADDING], self.length()?);
        while self.fill(&mut head, self.offset)? == HEADER {
            let Some(header) = format::parse(&head) else { break };
            let end = self.offset + HEADER as u64 + u64::from(header.length);
            if header.version > VERSION || end > length {
                break;
            }
            if !early(&header) {
                let most = TEXTS.min(header.length as usize);
                let there = self.fill(&mut bytes[..most], self.offset + HEADER as u64)?;
                if !lacks(&header, &bytes[..there + PADDING]) {
                    break;
                }
            }
            self.offset = end;
        }
        Ok(())
    }

    /// Steps from header to header over blocks that lie outside of the window.
    pub(super) fn pass_by(&mut self, window: Window, found: &mut Vec<Found>) -> Result<()> {
        let (mut head, length) = ([0; HEADER], self.length()?);
        while self.fill(&mut head, self.offset)? == HEADER {
            match format::parse(&head).map(|header| header.moved(&self.shift)) {
                Some(header) if header.version <= VERSION && passes(&header, window, self.offset, length) => {
                    self.offset += HEADER as u64 + u64::from(header.length);
                    found.push(Found::Passed(header));
                }
                _ => break,
            }
        }
        Ok(())
    }
}

/// Whether a block that begins at `at` of a file of `length` bytes need not be looked at. The first one of a segment dates
/// it, the last ones sum it up.
pub(super) fn passes(header: &Header, window: Window, at: u64, length: u64) -> bool {
    let end = at + HEADER as u64 + u64::from(header.length);
    let timeless = header.first_ns == 0 && header.last_ns == 0;
    let outside = header.last_ns < window.from_ns || header.first_ns > window.to_ns;
    outside && !timeless && !header.end && at > 0 && end + TAIL <= length
}
