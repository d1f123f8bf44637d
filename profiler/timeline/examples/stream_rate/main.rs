//! How fast a stream is written and read, on this machine: medians of repetitions. Encoding and decoding are one thread's
//! work, and counted in its CPU time, files' reads and writes with it; reading as a whole is counted in wall time.
//!
//! `cargo run --release -p dflash-timeline --example stream_rate [REPETITIONS]`

mod stream;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use dflash_timeline::record::{Iteration, Sample, Span};
use dflash_timeline::{Manifest, ReadOptions, RunDir, SegmentWriter, Visit, read, visit};

/// Holds the newest records, as a reader that works block by block does.
#[derive(Default)]
struct Recent {
    spans: Vec<Span>,
    iterations: Vec<Iteration>,
    samples: Vec<Sample>,
    records: u64,
}

const RECENT: usize = 1024;

impl Visit for Recent {
    #[inline]
    fn span(&mut self, span: Span) {
        if self.spans.len() == RECENT {
            black_box(&self.spans);
            self.spans.clear();
        }
        self.spans.push(span);
        self.records += 1;
    }

    #[inline]
    fn sample(&mut self, sample: Sample) {
        if self.samples.len() == RECENT {
            black_box(&self.samples);
            self.samples.clear();
        }
        self.samples.push(sample);
        self.records += 1;
    }

    fn iteration(&mut self, iteration: Iteration) {
        if self.iterations.len() == RECENT {
            black_box(&self.iterations);
            self.iterations.clear();
        }
        self.iterations.push(iteration);
        self.records += 1;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let repetitions = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    for device in [false, true] {
        let events = stream::events(device);
        let (mut encode, mut decode, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut size = 0.0;
        for _ in 0..repetitions {
            let directory = std::env::temp_dir().join(format!("dflash-stream-rate-{}", std::process::id()));
            let run = RunDir::create(&directory, "rate", Manifest::default())?;
            let writer = SegmentWriter::create(&run, 0, 64 << 20)?;
            let begin = cpu_ns()?;
            let (records, bytes) = stream::write(writer, &events)?;
            encode.push(records as f64 * 1e3 / (cpu_ns()? - begin) as f64);
            size = bytes as f64 / stream::SPANS as f64;
            let mut recent = Recent::default();
            let begin = cpu_ns()?;
            visit(&run, &ReadOptions::default(), &mut recent)?;
            decode.push(recent.records as f64 * 1e3 / (cpu_ns()? - begin) as f64);
            let begin = Instant::now();
            black_box(read(&run)?);
            whole.push(records as f64 / begin.elapsed().as_secs_f64() / 1e6);
            std::fs::remove_dir_all(&directory)?;
        }
        let what = if device { "host and device time" } else { "host time" };
        println!(
            "{what}: {size:.2} bytes a span; million records/s: encode {:.1}, decode {:.1}, read and sort \
             {:.1} (all cores)",
            median(encode),
            median(decode),
            median(whole)
        );
    }
    Ok(())
}

/// CPU time of this thread so far, as the scheduler counts it.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
