//! The frame of a block of the timing stream. What lies inside a block: `encode.rs`.
//!
//! A segment `timeline/rank<R>-<NNNNNN>.dft` is a sequence of blocks and nothing else. A block is a header of 48 bytes
//! and its payload; numbers are little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `DFTB` |
//! | 4 | 1 | version: 1, 2 (device anchors, stacks, lane totals) or 3 (streams, columns) |
//! | 5 | 1 | type: 0 data, 1 END (the stream's last block) |
//! | 6 | 1 | codec of the payload: 0 none |
//! | 7 | 1 | stream: lowest byte of the number of the attempt's first segment (0 in version 1) |
//! | 8 | 4 | rank |
//! | 12 | 4 | sequence number: 0 at an attempt's start, then one more each block, across segments |
//! | 16 | 4 | length of the payload as it lies in the file |
//! | 20 | 4 | length of the payload decoded |
//! | 24 | 4 | records in it |
//! | 28 | 8 | first time, monotonic nanoseconds (0 in a block without times) |
//! | 36 | 8 | last time |
//! | 44 | 4 | CRC-32C of bytes 0..44 and the payload |
//!
//! Every later version keeps these 48 bytes, so that a reader can tell a newer file from a damaged one. A block decodes
//! by itself: its names and base times are its own. A reader that meets bytes that are no block looks for the next
//! magic whose block's checksum holds, and reports what it skipped. A stream whose last block is not END is torn (or
//! still being written).

use crate::clock::Shift;

/// First bytes of a block.
pub(crate) const MAGIC: [u8; 4] = *b"DFTB";
/// Version that is written, and the newest that is read.
pub(crate) const VERSION: u8 = 3;
/// Bytes of a header.
pub(crate) const HEADER: usize = 48;
/// A length above this is damage, and nothing is allocated for it.
pub(crate) const LONGEST: usize = 16 << 20;
const CRC_AT: usize = 44;

/// What a block's header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub version: u8,
    pub end: bool,
    pub codec: u8,
    /// Tells the streams of a rank's attempts apart.
    pub stream: u8,
    pub rank: u32,
    pub sequence: u32,
    pub length: u32,
    pub raw_length: u32,
    pub records: u32,
    pub first_ns: i64,
    pub last_ns: i64,
    pub crc: u32,
    /// Added to all times of the block where they are decoded; the two above are on rank 0's clock already. Not in the
    /// file (see `clock.rs`).
    pub shift_ns: i64,
}

impl Header {
    /// The same on another clock.
    pub(crate) fn moved(mut self, shift: &Shift) -> Self {
        if self.first_ns != 0 || self.last_ns != 0 {
            self.first_ns = shift.moved(self.first_ns);
            self.last_ns = shift.moved(self.last_ns);
        }
        self.shift_ns = shift.first_ns();
        self
    }
}

/// What stands at some place of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A block whose checksum holds; its payload follows the header.
    Whole(Header),
    /// Perhaps a block, but the bytes end before it does.
    Short,
    /// No block.
    Bad,
}

/// The header of a block with this payload, as it stands in the file.
pub(crate) fn head(header: &Header, payload: &[&[u8]]) -> [u8; HEADER] {
    let mut head = [0; HEADER];
    head[..4].copy_from_slice(&MAGIC);
    head[4..8].copy_from_slice(&[VERSION, u8::from(header.end), header.codec, header.stream]);
    let numbers = [header.rank, header.sequence, header.length, header.raw_length, header.records];
    for (place, number) in head[8..28].as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    head[28..36].copy_from_slice(&header.first_ns.to_le_bytes());
    head[36..44].copy_from_slice(&header.last_ns.to_le_bytes());
    let crc = payload.iter().fold(crc32c::crc32c(&head[..CRC_AT]), |crc, part| crc32c::crc32c_append(crc, part));
    head[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Looks at `bytes`, which begin where a block should, and checks it.
pub(crate) fn look(bytes: &[u8]) -> Frame {
    let Some(head) = bytes.first_chunk::<HEADER>() else {
        return if MAGIC.starts_with(&bytes[..bytes.len().min(4)]) || bytes.starts_with(&MAGIC) {
            Frame::Short
        } else {
            Frame::Bad
        };
    };
    let Some(header) = parse(head) else {
        return Frame::Bad;
    };
    let end = HEADER + header.length as usize;
    let Some(payload) = bytes.get(HEADER..end) else {
        return Frame::Short;
    };
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..CRC_AT]), payload);
    if crc == header.crc { Frame::Whole(header) } else { Frame::Bad }
}

/// What a header says, if it is one. Its checksum is not looked at.
pub(crate) fn parse(head: &[u8; HEADER]) -> Option<Header> {
    let u32_at = |at: usize| head[at..].first_chunk().map(|b| u32::from_le_bytes(*b));
    let i64_at = |at: usize| head[at..].first_chunk().map(|b| i64::from_le_bytes(*b));
    let header = Header {
        version: head[4],
        end: head[5] == 1,
        codec: head[6],
        stream: head[7],
        rank: u32_at(8)?,
        sequence: u32_at(12)?,
        length: u32_at(16)?,
        raw_length: u32_at(20)?,
        records: u32_at(24)?,
        first_ns: i64_at(28)?,
        last_ns: i64_at(36)?,
        crc: u32_at(CRC_AT)?,
        shift_ns: 0,
    };
    let sane = header.length as usize <= LONGEST && header.raw_length as usize <= LONGEST;
    (head.starts_with(&MAGIC) && sane).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::{Frame, HEADER, Header, VERSION, head, look};

    fn sample() -> (Header, Vec<u8>) {
        let header = Header { rank: 3, sequence: 7, length: 5, raw_length: 5, records: 1, ..Header::default() };
        let head = head(&header, &[b"hel", b"lo"]);
        (header, [head.as_slice(), b"hello"].concat())
    }

    #[test]
    fn a_block_is_recognised() {
        let (header, block) = sample();
        assert_eq!(block.len(), HEADER + 5);
        let Frame::Whole(found) = look(&block) else { panic!("not whole") };
        assert_eq!(found, Header { version: VERSION, crc: found.crc, ..header });
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (_, block) = sample();
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(look(&flipped), Frame::Whole(_)), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_is_short() {
        let (_, block) = sample();
        for length in 0..block.len() {
            assert_eq!(look(&block[..length]), Frame::Short, "cut at {length}");
        }
        assert_eq!(look(b"DFX"), Frame::Bad);
    }
}
