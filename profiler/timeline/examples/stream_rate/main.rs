//! How fast a stream is written and read, on this machine: medians of repetitions. Encoding and decoding are one thread's
//! work, and counted in its CPU time, the files' writes and reads with it; reading as a whole is counted in wall time.
//!
//! `cargo run --release -p dflash-timeline --example stream_rate [REPETITIONS]`

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

mod stream;
mod write;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use dflash_timeline::record::{Iteration, Sample, Span};
use dflash_timeline::{Manifest, ReadOptions, RunDir, SegmentWriter, Visit, read, visit};

use crate::stream::Event;
use crate::write::Written;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Events that stay in a core's cache, as records do that come from a ring.
const CACHED: usize = 4_000;
/// How often such events are written, one time after the other.
const TIMES: usize = 16;

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
        let numbers = s.iteration.unwrap_or(0).wrapping_add(s.index.unwrap_or(0));
        self.add([ids, numbers, s.begin_ns as u64, s.duration_ns, device_ns, device_duration_ns]);
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

fn main() -> Result<()> {
    let repetitions: u32 = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("dflash-stream-rate-{}", std::process::id()));
    for device in [false, true] {
        let events = stream::events(device);
        let (mut encode, mut decode, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut size = 0.0;
        for _ in 0..repetitions {
            encode.push(encode_rate(&directory, &events)?);
            let run = RunDir::create(&directory, "rate", Manifest::default())?;
            let mut writer = SegmentWriter::create(&run, 0, 64 << 20)?;
            let mut written = Written::default();
            stream::introduce(&mut writer);
            written.write(&mut writer, &events)?;
            size = writer.bytes() as f64 / stream::SPANS as f64;
            writer.end(&[], written.totals())?;
            let (begin, mut sum) = (cpu_ns()?, Sum::default());
            visit(&run, &ReadOptions::default(), &mut sum)?;
            decode.push(sum.records as f64 * 1e3 / (cpu_ns()? - begin) as f64);
            black_box(sum.sum);
            let begin = Instant::now();
            black_box(read(&run)?);
            whole.push(written.records as f64 / begin.elapsed().as_secs_f64() / 1e6);
            std::fs::remove_dir_all(&directory)?;
        }
        let what = if device { "host and device time" } else { "host time" };
        let (encode, decode, whole) = (median(encode), median(decode), median(whole));
        println!(
            "{what}: {size:.2} bytes a span; million records/s: encode {encode:.1}, decode {decode:.1}, \
             read and sort {whole:.1} (all cores)"
        );
    }
    Ok(())
}

/// Million records a second of one core.
fn encode_rate(directory: &Path, events: &[Event]) -> Result<f64> {
    let run = RunDir::create(directory, "encode", Manifest::default())?;
    let mut writer = SegmentWriter::create(&run, 0, 64 << 20)?;
    let mut written = Written::default();
    stream::introduce(&mut writer);
    let begin = cpu_ns()?;
    for some in events.chunks(CACHED) {
        // The first time fetches the events from memory; the others are many.
        for _ in 0..TIMES {
            written.write(&mut writer, some)?;
        }
    }
    let rate = written.records as f64 * 1e3 / (cpu_ns()? - begin) as f64;
    writer.end(&[], written.totals())?;
    std::fs::remove_dir_all(run.path())?;
    Ok(rate)
}

/// CPU time of this thread so far, as the scheduler counts it.
fn cpu_ns() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
