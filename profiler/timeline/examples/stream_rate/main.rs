//! How fast a stream is written and read, on this machine: the least and the median of repetitions, in nanoseconds a record
//! and million records a second. Encoding and decoding are one thread's work, and counted in its CPU time: checksums, the
//! files' writes and reads are in it. What the system takes to write and read such bytes is measured beside, with nothing
//! encoded; what is left is encoding and decoding alone. Reading as a whole is counted in wall time.
//!
//! `cargo run --release -p dflash-timeline --example stream_rate [REPETITIONS]`

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

mod stream;
mod write;

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use dflash_sys::thread_cpu_ns;
use dflash_timeline::record::{Iteration, Sample, Span};
use dflash_timeline::{Manifest, ReadOptions, RunDir, SegmentWriter, Visit, read, visit};

use crate::stream::Event;
use crate::write::Written;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Events that stay in a core's cache, as records do that come from a ring.
const CACHED: usize = 4_000;
/// How often such events are written, one time after the other.
const TIMES: usize = 16;
/// Bytes of a block's header, and where it says how many follow it.
const HEADER: usize = 48;
const LENGTH_AT: usize = 16;
/// Bytes that are read at once.
const CHUNK: usize = 512 << 10;

/// Takes every field of every record.
#[derive(Default)]
struct Sum {
    records: u64,
    sum: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, numbers: [u64; 6]) {
        self.records += 1;
        self.sum = numbers.into_iter().fold(self.sum, u64::wrapping_add);
    }
}

impl Visit for Sum {
    #[inline]
    fn span(&mut self, s: Span) {
        let ids = u64::from(s.name.0) + u64::from(s.lane.0) + u64::from(s.depth);
        let (device_ns, device_duration_ns) = s.device.map_or((0, 0), |d| (d.begin_ns as u64, d.duration_ns));
        let stream = s.device.and_then(|d| d.stream).map_or(0, |stream| u64::from(stream.0));
        let numbers = s.iteration.unwrap_or(0).wrapping_add(s.index.unwrap_or(0));
        self.add([ids + stream, numbers, s.begin_ns as u64, s.duration_ns, device_ns, device_duration_ns]);
    }

    #[inline]
    fn sample(&mut self, s: Sample) {
        self.add([u64::from(s.counter.0), s.time_ns as u64, s.value.to_bits(), 0, 0, 0]);
    }

    fn iteration(&mut self, i: Iteration) {
        let ids = u64::from(i.lane.0) + i.kind as u64;
        let (cpu_ns, tokens) = (i.cpu_ns.unwrap_or(0), i.tokens.unwrap_or(0));
        self.add([ids, i.number, i.begin_ns as u64, i.duration_ns, cpu_ns, tokens]);
    }
}

/// Nanoseconds a record of each repetition.
#[derive(Default)]
struct Found {
    encode: Vec<f64>,
    writes: Vec<f64>,
    encode_alone: Vec<f64>,
    decode: Vec<f64>,
    reads: Vec<f64>,
    decode_alone: Vec<f64>,
    whole: Vec<f64>,
}

fn main() -> Result<()> {
    let repetitions: u32 = std::env::args().nth(1).map_or(Ok(21), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("dflash-stream-rate-{}", std::process::id()));
    for device in [false, true] {
        let events = stream::events(device);
        let (mut found, mut size) = (Found::default(), 0.0);
        for _ in 0..repetitions {
            size = repetition(&directory, &events, &mut found)?;
        }
        println!("{}: {size:.2} bytes a span", if device { "host and device time" } else { "host time" });
        show("encode", found.encode);
        show("  the system's writes", found.writes);
        show("  encode alone", found.encode_alone);
        show("decode", found.decode);
        show("  the system's reads", found.reads);
        show("  decode alone", found.decode_alone);
        show("read and sort (all cores)", found.whole);
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Measures everything once, one after the other; returns bytes a span.
fn repetition(directory: &Path, events: &[Event], found: &mut Found) -> Result<f64> {
    let encode = encode_ns(directory, events)?;
    let run = RunDir::create(directory, "rate", Manifest::default())?;
    let mut writer = SegmentWriter::create(&run, 0, 64 << 20)?;
    let mut written = Written::default();
    stream::introduce(&mut writer);
    written.write(&mut writer, events)?;
    let size = writer.bytes() as f64 / stream::SPANS as f64;
    writer.end(&[], written.totals())?;
    let writes = writes_ns(&run)? as f64 / written.records as f64;
    found.encode.push(encode);
    found.writes.push(writes);
    found.encode_alone.push(encode - writes);
    let (begin, mut sum) = (thread_cpu_ns(), Sum::default());
    visit(&run, &ReadOptions::default(), &mut sum)?;
    let decode = (thread_cpu_ns() - begin) as f64 / sum.records as f64;
    black_box(sum.sum);
    let reads = reads_ns(&run)? as f64 / sum.records as f64;
    found.decode.push(decode);
    found.reads.push(reads);
    found.decode_alone.push(decode - reads);
    let begin = Instant::now();
    black_box(read(&run)?);
    found.whole.push(begin.elapsed().as_nanos() as f64 / written.records as f64);
    std::fs::remove_dir_all(run.path())?;
    Ok(size)
}

/// Nanoseconds a record.
fn encode_ns(directory: &Path, events: &[Event]) -> Result<f64> {
    let run = RunDir::create(directory, "encode", Manifest::default())?;
    let mut writer = SegmentWriter::create(&run, 0, 64 << 20)?;
    let mut written = Written::default();
    stream::introduce(&mut writer);
    let begin = thread_cpu_ns();
    for some in events.chunks(CACHED) {
        // The first time fetches the events from memory; the others are many.
        for _ in 0..TIMES {
            written.write(&mut writer, some)?;
        }
    }
    let ns = (thread_cpu_ns() - begin) as f64 / written.records as f64;
    writer.end(&[], written.totals())?;
    std::fs::remove_dir_all(run.path())?;
    Ok(ns)
}

/// What writing a run's blocks takes, each with one write, nothing encoded.
fn writes_ns(run: &RunDir) -> Result<u64> {
    let bytes = std::fs::read(run.timeline_dir().join("rank0-000001.dft"))?;
    let mut file = std::fs::File::options().append(true).create_new(true).open(run.path().join("blocks"))?;
    let (mut rest, begin) = (bytes.as_slice(), thread_cpu_ns());
    while let Some(length) = rest.get(LENGTH_AT..).and_then(|at| at.first_chunk()) {
        let (block, behind) = rest.split_at(HEADER + u32::from_le_bytes(*length) as usize);
        file.write_all(block)?;
        rest = behind;
    }
    Ok(thread_cpu_ns() - begin)
}

/// What reading a run's segment takes, in chunks as the reader's on two cores.
fn reads_ns(run: &RunDir) -> Result<u64> {
    let file = std::fs::File::open(run.timeline_dir().join("rank0-000001.dft"))?;
    let mut buffer = vec![0; CHUNK];
    // The reader's buffer is in use, too, after its first chunk.
    file.read_at(&mut buffer, 0)?;
    let (mut at, begin) = (0, thread_cpu_ns());
    loop {
        match file.read_at(&mut buffer, at)? {
            0 => return Ok(thread_cpu_ns() - begin),
            count => at += count as u64,
        }
    }
}

fn show(what: &str, mut ns: Vec<f64>) {
    ns.sort_by(f64::total_cmp);
    let [least, median] = [0, ns.len() / 2].map(|at| ns.get(at).copied().unwrap_or(f64::NAN));
    let [best, usual] = [least, median].map(|ns| 1e3 / ns);
    println!("  {what:<28} ns a record: least {least:6.2}, median {median:6.2}; M records/s: {best:6.1}, {usual:6.1}");
}
