//! Event files for TensorBoard: a record is its length, the length's checksum, the data, the data's checksum.

mod log;
mod proto;
mod tags;

pub use log::MetricsLog;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Appends events to a file of its own.
#[derive(Debug)]
pub struct EventWriter {
    file: File,
    path: PathBuf,
}

impl EventWriter {
    /// Makes a new file in `directory`, under the name by which TensorBoard finds it; each attempt of a run has its own.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn create(directory: &Path, unix_seconds: f64, host: &str) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let stem = format!("events.out.tfevents.{:010}.{host}.{}", unix_seconds as u64, std::process::id());
        for number in 0_u32.. {
            let path = directory.join(format!("{stem}.{number}"));
            match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => {
                    let mut writer = Self { file: file?, path };
                    writer.record(&proto::version(unix_seconds))?;
                    return Ok(writer);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Writes the scalars of one step, in one piece, so that a reader sees all of them or none.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn scalars(&mut self, unix_seconds: f64, step: i64, scalars: &[(String, f64)]) -> io::Result<()> {
        self.record(&proto::scalars(unix_seconds, step, scalars))
    }

    /// Where it writes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend(length);
        record.extend(masked(&length).to_le_bytes());
        record.extend(data);
        record.extend(masked(data).to_le_bytes());
        self.file.write_all(&record)
    }
}

/// CRC-32C, turned and moved, so that the checksum of data with checksums in it is no constant.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, from the polynomial: nothing of the writer's is in it.
    fn plain_crc(data: &[u8]) -> u32 {
        let step = |crc: u32, byte: &u8| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
        };
        !data.iter().fold(u32::MAX, step)
    }

    fn check(data: &[u8], sum: &[u8]) {
        let sum = u32::from_le_bytes(sum.try_into().unwrap()).wrapping_sub(0xa282_ead8);
        assert_eq!(sum.rotate_left(15), plain_crc(data));
    }

    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            check(&bytes[..8], &bytes[8..12]);
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            check(&bytes[12..12 + length], &bytes[12 + length..16 + length]);
            records.push(bytes[12..12 + length].to_vec());
            bytes = &bytes[16 + length..];
        }
        records
    }

    /// A protobuf message's fields by number, as its wire format says.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
            let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
            *bytes = &bytes[end + 1..];
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let taken = match key & 7 {
                0 => varint(&mut bytes).to_le_bytes().to_vec(),
                kind => {
                    let length = match kind {
                        1 => 8,
                        2 => varint(&mut bytes) as usize,
                        5 => 4,
                        other => panic!("wire type {other}"),
                    };
                    let (taken, rest) = bytes.split_at(length);
                    bytes = rest;
                    taken.to_vec()
                }
            };
            found.push((key >> 3, taken));
        }
        found
    }

    #[test]
    fn the_checksum_of_the_reference_is_found() {
        assert_eq!(plain_crc(b"123456789"), 0xe306_9283);
        check(b"abc", &masked(b"abc").to_le_bytes());
    }

    #[test]
    fn another_reader_finds_version_and_scalars() {
        let place = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(place.path(), 1_700_000_000.5, "here").unwrap();
        let scalars = [("train/loss".to_owned(), 2.5), ("slots/accuracy_1".to_owned(), -0.125)];
        writer.scalars(1_700_000_001.25, 300, &scalars).unwrap();
        let another = EventWriter::create(place.path(), 1_700_000_000.5, "here").unwrap();
        assert_ne!(writer.path(), another.path());
        assert!(
            writer.path().file_name().unwrap().to_str().unwrap().starts_with("events.out.tfevents.1700000000.here.")
        );

        let records = records(&fs::read(writer.path()).unwrap());
        assert_eq!(records.len(), 2);
        let begin = fields(&records[0]);
        assert_eq!(begin[0], (1, 1_700_000_000.5f64.to_le_bytes().to_vec()));
        assert_eq!(begin[1], (3, b"brain.Event:2".to_vec()));
        let event = fields(&records[1]);
        assert_eq!(event[0], (1, 1_700_000_001.25f64.to_le_bytes().to_vec()));
        assert_eq!(event[1], (2, 300u64.to_le_bytes().to_vec()));
        assert_eq!((event[2].0, event.len()), (5, 3));
        let values: Vec<_> = fields(&event[2].1).iter().map(|(number, value)| (*number, fields(value))).collect();
        let value = |tag: &[u8], number: f32| (1, vec![(1, tag.to_vec()), (2, number.to_le_bytes().to_vec())]);
        assert_eq!(values, [value(b"train/loss", 2.5), value(b"slots/accuracy_1", -0.125)]);
    }
}
