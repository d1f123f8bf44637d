//! A stream like that of a training on eight lanes, and what it takes to write and read it through the timeline's public
//! interface, beside two plain ways to store the same spans.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use dflash_timeline::record::{
    Counter, CounterId, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, NameId, OpenSpan, Sample, Span,
    Totals,
};
use dflash_timeline::{Manifest, RunDir, SegmentWriter, Timeline, read};
use serde_json::{Value, json};

use crate::ours::Fault;
use crate::rounds::Random;

const LANES: u32 = 8;
const COUNTERS: u32 = 16;
/// Of an iteration: stages, then layers inside the third one.
const STAGES: u64 = 8;
const LAYERS: u64 = 4;
/// Four blocks a second, each with four iterations a lane.
const BLOCK_NS: u64 = 250_000_000;
const ITERATIONS_A_BLOCK: u64 = 4;
const SAMPLES_A_BLOCK: u64 = 130;
const SEGMENT_BYTES: u64 = 64 << 20;

/// What is written, in the order of a writer that empties one lane after the other, block by block.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// A finished span.
    Span(Span),
    /// A finished iteration.
    Iteration(Iteration),
    /// A counter's reading.
    Sample(Sample),
    /// One end of a hand-off.
    Flow(Flow),
    /// The block ends, with a span open on every lane.
    Flush(i64),
}

/// What one way of storing took.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Writing it.
    pub write: Duration,
    /// Reading it back into memory.
    pub read: Duration,
    /// Bytes on disk.
    pub bytes: u64,
}

/// So many blocks of the stream; with `device`, stages have a device time.
#[must_use]
pub fn stream(blocks: u64, device: bool) -> Vec<Record> {
    let mut random = Random::default();
    let mut records = Vec::new();
    for block in 0..blocks {
        let begin = 5_000_000_000_000 + (block * BLOCK_NS) as i64;
        for lane in 0..LANES {
            for n in 0..ITERATIONS_A_BLOCK {
                let at = begin + (n * BLOCK_NS / ITERATIONS_A_BLOCK) as i64;
                iteration(&mut records, &mut random, LaneId(lane), block * ITERATIONS_A_BLOCK + n, at, device);
            }
        }
        for n in 0..SAMPLES_A_BLOCK {
            let time_ns = begin + (n * BLOCK_NS / SAMPLES_A_BLOCK + random.below(1_000)) as i64;
            let value = if n % 4 == 0 { random.below(1_000_000) as f64 / 1e3 } else { random.below(64) as f64 };
            records.push(Record::Sample(Sample { counter: CounterId(n as u32 % COUNTERS), time_ns, value }));
        }
        records.push(Record::Flush(begin + BLOCK_NS as i64));
    }
    records
}

/// An iteration of some 60 ms: what lies inside stands before what it lies in, since it ends before it.
fn iteration(records: &mut Vec<Record>, random: &mut Random, lane: LaneId, number: u64, begin: i64, device: bool) {
    let mut at = begin + random.below(20_000) as i64;
    for stage in 0..STAGES {
        let stage_at = at;
        let name = NameId(lane.0 / 4 * (STAGES as u32 + 1) + stage as u32);
        let mut span = Span {
            name,
            lane,
            iteration: Some(number),
            index: None,
            depth: 0,
            begin_ns: 0,
            duration_ns: 0,
            device: None,
        };
        for layer in 0..if stage == 2 { LAYERS } else { 0 } {
            let duration_ns = 900_000 + random.below(400_000);
            let inner =
                Span { name: NameId(name.0 + 1), index: Some(layer), depth: 1, begin_ns: at, duration_ns, ..span };
            records.push(Record::Span(inner));
            at += (duration_ns + random.below(3_000)) as i64;
        }
        at += (3_000_000 + random.below(4_000_000)) as i64;
        (span.begin_ns, span.duration_ns) = (stage_at, (at - stage_at).cast_unsigned());
        let (begin_ns, duration_ns) =
            (stage_at + 4_000 + random.below(50_000) as i64, span.duration_ns + random.below(90_000));
        span.device = device.then_some(DeviceTime { begin_ns, duration_ns, stream: None });
        records.push(Record::Span(span));
        at += random.below(2_000) as i64;
    }
    let end = if lane.0 < 4 { FlowEnd::Put } else { FlowEnd::Take };
    records.push(Record::Flow(Flow { id: number * 4 + u64::from(lane.0 % 4), end, lane, time_ns: at }));
    let (cpu_ns, tokens) = (Some(20_000_000 + random.below(9_000_000)), Some(4_096 - random.below(300)));
    let duration_ns = (at - begin).cast_unsigned();
    records.push(Record::Iteration(Iteration {
        lane,
        number,
        kind: Kind::Train,
        begin_ns: begin,
        duration_ns,
        cpu_ns,
        tokens,
    }));
}

/// Records that count: everything but the ends of blocks.
#[must_use]
pub fn count(records: &[Record]) -> (u64, u64) {
    let all = records.iter().filter(|record| !matches!(record, Record::Flush(_))).count();
    let spans = records.iter().filter(|record| matches!(record, Record::Span(_))).count();
    (all as u64, spans as u64)
}

/// dflash's own stream: written, and read into a [`Timeline`] that is sorted and has its texts resolved.
pub fn timeline(records: &[Record]) -> Result<Stored, Fault> {
    let directory = tempfile::tempdir()?;
    let run = RunDir::create(directory.path(), "bench", Manifest::default())?;
    let begin = Instant::now();
    let bytes = write_timeline(&run, records)?;
    let wrote = begin.elapsed();
    let begin = Instant::now();
    let timeline: Timeline = black_box(read(&run)?);
    let took = begin.elapsed();
    let Timeline { spans, iterations, samples, flows, .. } = &timeline;
    let found = spans.len() + iterations.len() + samples.len() + flows.len();
    if found as u64 != count(records).0 {
        return Err(format!("{found} records were read of {}", count(records).0).into());
    }
    Ok(Stored { write: wrote, read: took, bytes })
}

fn write_timeline(run: &RunDir, records: &[Record]) -> Result<u64, Fault> {
    let mut writer = SegmentWriter::create(run, 0, SEGMENT_BYTES)?;
    for lane in 0..LANES {
        writer.lane(&Lane { name: format!("lane:{lane}"), device: format!("cuda:{lane}"), rank: 0 });
    }
    for name in 0..2 * (STAGES + 1) {
        writer.name(&format!("drafter.stage{name}"));
    }
    for counter in 0..COUNTERS {
        writer.counter(&Counter { name: format!("gpu.{counter}.power"), unit: "W".to_owned(), rank: 0 });
    }
    for record in records {
        match record {
            Record::Span(span) => writer.span(span)?,
            Record::Iteration(iteration) => writer.iteration(iteration)?,
            Record::Sample(sample) => writer.sample(sample)?,
            Record::Flow(flow) => writer.flow(flow)?,
            Record::Flush(at) => writer.flush(&open(*at), Totals::default())?,
        }
    }
    writer.flush(&[], Totals::default())?;
    Ok(writer.bytes())
}

fn open(at: i64) -> Vec<OpenSpan> {
    (0..LANES).map(|lane| OpenSpan { name: NameId(lane), lane: LaneId(lane), begin_ns: at - 1_000_000 }).collect()
}

/// A span as ten numbers of eight bytes: the least work that storing one can be. Neither checked nor resumable.
pub fn fixed(records: &[Record]) -> Result<Stored, Fault> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("fixed");
    let begin = Instant::now();
    let mut file = BufWriter::with_capacity(1 << 16, File::create(&path)?);
    for numbers in records.iter().filter_map(numbers) {
        numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
    }
    file.flush()?;
    let wrote = begin.elapsed();
    let begin = Instant::now();
    let mut file = BufReader::with_capacity(1 << 16, File::open(&path)?);
    let mut spans = Vec::new();
    let mut bytes = [0; 80];
    while file.read_exact(&mut bytes).is_ok() {
        let mut numbers = [0; 10];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into()?);
        }
        spans.push(numbers);
    }
    black_box(&spans);
    Ok(Stored { write: wrote, read: begin.elapsed(), bytes: size(&path)? })
}

/// A JSON object a line, as Chrome's traces have them.
pub fn json_lines(records: &[Record]) -> Result<Stored, Fault> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("lines.json");
    let begin = Instant::now();
    let mut file = BufWriter::with_capacity(1 << 16, File::create(&path)?);
    for n in records.iter().filter_map(numbers) {
        let args = json!({"iteration": n[2], "index": n[3], "device_ts": n[7], "device_dur": n[8]});
        let line = json!({"ph": "X", "pid": 0, "tid": n[1], "name": n[0], "ts": n[5], "dur": n[6], "args": args});
        serde_json::to_writer(&mut file, &line)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    let wrote = begin.elapsed();
    let begin = Instant::now();
    let lines = serde_json::Deserializer::from_reader(BufReader::new(File::open(&path)?)).into_iter::<Value>();
    let lines: Result<Vec<Value>, _> = lines.collect();
    black_box(lines?.len());
    Ok(Stored { write: wrote, read: begin.elapsed(), bytes: size(&path)? })
}

fn numbers(record: &Record) -> Option<[u64; 10]> {
    let Record::Span(s) = record else { return None };
    let (name, lane) = (u64::from(s.name.0), u64::from(s.lane.0));
    let (iteration, index) = (s.iteration.unwrap_or(u64::MAX), s.index.unwrap_or(u64::MAX));
    let device = s.device.map_or((0, 0), |d| (d.begin_ns.cast_unsigned(), d.duration_ns));
    let depth = u64::from(s.depth);
    Some([name, lane, iteration, index, depth, s.begin_ns.cast_unsigned(), s.duration_ns, device.0, device.1, 0])
}

fn size(path: &Path) -> Result<u64, Fault> {
    Ok(path.metadata()?.len())
}
