//! One block by itself, or its header.

use super::{Batch, Found, Segment};
use crate::decode::PADDING;
use crate::error::Result;
use crate::format::{self, Frame, HEADER, Header, VERSION};

impl Segment {
    /// The header at the begin of the file; `None` if there is none yet.
    pub(crate) fn first_header(&self) -> Result<Option<Header>> {
        self.header(0)
    }

    fn header(&self, at: u64) -> Result<Option<Header>> {
        let mut head = [0; HEADER];
        let length = self.fill(&mut head, at)?;
        Ok(head
            .get(..length)
            .and_then(<[u8]>::first_chunk)
            .and_then(format::parse)
            .map(|header| header.moved(&self.shift)))
    }

    /// The block at the begin of the file, if it is whole.
    pub(crate) fn first_block<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<Option<Batch<'a>>> {
        self.block(0, buffer)
    }

    /// The block at the place that was reached, if it is whole, and nothing of what follows.
    pub(crate) fn one<'a>(&mut self, buffer: &'a mut Vec<u8>) -> Result<Option<Batch<'a>>> {
        let batch = self.block(self.offset, buffer)?;
        self.offset += batch.as_ref().map_or(0, |batch| (batch.bytes.len() - PADDING) as u64);
        Ok(batch)
    }

    fn block<'a>(&self, at: u64, buffer: &'a mut Vec<u8>) -> Result<Option<Batch<'a>>> {
        let Some(header) = self.header(at)? else { return Ok(None) };
        buffer.resize(HEADER + header.length as usize, 0);
        let filled = self.fill(buffer, at)?;
        buffer.truncate(filled);
        match format::look(buffer) {
            Frame::Whole(header) if header.version <= VERSION => {
                buffer.resize(filled + PADDING, 0);
                let header = header.moved(&self.shift);
                Ok(Some(Batch { bytes: buffer, found: vec![Found::Block { header, at: 0 }], drift: self.drift() }))
            }
            _ => Ok(None),
        }
    }
}
