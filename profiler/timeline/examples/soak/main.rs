//! Days of recording, as fast as the machine goes: memory stays flat, detail within `keep`, and what is kept for ever small.
//!
//! `cargo run --release -p dflash-timeline --example soak [HOURS]`; `make soak` runs 72 simulated hours.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

mod rows;
#[path = "../stream_rate/stream.rs"]
mod stream;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use dflash_timeline::record::Totals;
use dflash_timeline::{
    IterationsWriter, Manifest, ReadOptions, RunDir, SegmentWriter, StreamOptions, Visit, iterations, visit,
};

use crate::rows::Worker;
use crate::stream::{Dice, Event};

/// Simulated seconds that are written at once.
const STRIDE_S: u64 = 20;
const KEEP: u64 = 1 << 30;
/// Most memory, of which packing takes a good part.
const MOST_RSS: u64 = 256 << 20;
/// Most bytes a day of what is kept for ever.
const MOST_A_DAY: f64 = 300e6;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Everything that is being written.
struct Soak {
    run: RunDir,
    stream: SegmentWriter,
    csv: IterationsWriter,
    workers: Vec<Worker>,
    dice: Dice,
    events: Vec<Event>,
    emitted: u64,
    rows: u64,
}

fn main() -> Result<()> {
    let hours: u64 = std::env::args().nth(1).map_or(Ok(72), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("dflash-soak-{}", std::process::id()));
    let soaked = soak(&directory, hours);
    std::fs::remove_dir_all(&directory)?;
    soaked
}

fn soak(directory: &Path, hours: u64) -> Result<()> {
    let run = RunDir::create(directory, "soak", Manifest::default())?;
    let options = StreamOptions { keep_bytes: Some(KEEP), ..StreamOptions::default() };
    let mut stream = SegmentWriter::with_options(&run, 0, &options)?;
    stream::introduce(&mut stream);
    let csv = IterationsWriter::open(&run.iterations_csv())?;
    let (workers, dice) = (Worker::all(), Dice::new(7));
    let mut soak = Soak { run, stream, csv, workers, dice, events: events(), emitted: 0, rows: 0 };
    let (mut settled, mut most) = (0, 0);
    for stride in 0..hours * 3600 / STRIDE_S {
        soak.stride(stride)?;
        let rss = rss()?;
        most = most.max(rss);
        if rss > MOST_RSS {
            return Err(
                format!("{rss} bytes of memory after {} s, at most {MOST_RSS} are right", stride * STRIDE_S).into()
            );
        }
        if (stride + 1) % (3600 / STRIDE_S) == 0 {
            let hour = (stride + 1) * STRIDE_S / 3600;
            settled = if hour == 1 { rss } else { settled };
            let detail = size(&soak.run.timeline_dir(), "dft")?;
            println!("hour {hour}: memory {} MB, detail {} MB", rss >> 20, detail >> 20);
            if detail > KEEP {
                return Err(format!("{detail} bytes of detail, `keep` is {KEEP}").into());
            }
        }
    }
    println!("memory: {} MB after an hour, {} MB at most", settled >> 20, most >> 20);
    soak.check(hours)
}

impl Soak {
    /// Writes some seconds of everything.
    fn stride(&mut self, stride: u64) -> Result<()> {
        let shift_ns = (stride * STRIDE_S * 1_000_000_000) as i64;
        for event in &self.events {
            match event {
                Event::Span(s) => self.stream.span(&shifted(s, shift_ns))?,
                Event::Iteration(i) => self.stream.iteration(&{
                    let mut i = *i;
                    i.begin_ns += shift_ns;
                    i
                })?,
                Event::Sample(s) => self.stream.sample(&{
                    let mut s = *s;
                    s.time_ns += shift_ns;
                    s
                })?,
                Event::Flush(open) => {
                    self.stream.flush(open, Totals { emitted: self.emitted, ..Totals::default() })?;
                    continue;
                }
            }
            self.emitted += 1;
        }
        let until_ns = rows::START_NS + shift_ns + (STRIDE_S * 1_000_000_000) as i64;
        while let Some(worker) = self.workers.iter_mut().filter(|w| w.next_ns < until_ns).min_by_key(|w| w.next_ns) {
            for row in worker.iterate(&mut self.dice) {
                self.csv.write(&row)?;
                self.rows += 1;
            }
        }
        self.csv.flush()?;
        // A real run gives packing a quarter of an hour for what comes here in seconds.
        while parts(&self.run, "csv")? > 2 {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Ends the recording, reads it, and compares.
    fn check(mut self, hours: u64) -> Result<()> {
        self.csv.flush()?;
        let end = self.stream.end(&[], Totals { emitted: self.emitted, ..Totals::default() })?;
        while parts(&self.run, "csv")? > 1 {
            std::thread::sleep(Duration::from_millis(50));
        }
        if let Some(problem) = self.csv.problem() {
            return Err(problem.into());
        }
        let packed = size(self.run.path(), "zst")? as f64;
        let live = std::fs::metadata(self.run.iterations_csv())?.len();
        let (mut rows, mut in_parts) = (0, 0_u64);
        let mut sum = 0;
        for row in iterations(&self.run.iterations_csv())? {
            let row = row?;
            match row.stage.as_str() {
                "total" if row.host_ns != Some(sum) => return Err(format!("{row:?} is not {sum}").into()),
                "total" => sum = 0,
                _ => sum += row.host_ns.unwrap_or(0),
            }
            rows += 1;
            in_parts += u64::from(row.start_ns % 1000 == 0);
        }
        let a_day = packed / in_parts as f64 * self.rows as f64 / hours as f64 * 24.0;
        println!(
            "{rows} rows, {:.0} a second; packed {:.2} bytes a row, {:.0} MB a day (and a plain file of {} MB)",
            self.rows as f64 / hours as f64 / 3600.0,
            packed / in_parts as f64,
            a_day / 1e6,
            live >> 20
        );
        if rows != self.rows || a_day > MOST_A_DAY {
            return Err(format!("{} rows were written; at most {MOST_A_DAY} bytes a day are right", self.rows).into());
        }
        let mut count = Count(0);
        let timeline = visit(&self.run, &ReadOptions::default(), &mut count)?;
        println!("{} records, of which {} expired and {} are there", end.written, timeline.expired.records, count.0);
        let adds_up = timeline.expired.records + count.0 == end.written && timeline.totals == end;
        if !adds_up || !timeline.health.ended || timeline.health.bad_blocks > 0 {
            return Err(format!("{:?} {:?}", timeline.totals, timeline.health).into());
        }
        Ok(())
    }
}

/// Counts the records that are there.
struct Count(u64);

impl Visit for Count {
    fn span(&mut self, _: dflash_timeline::record::Span) {
        self.0 += 1;
    }
    fn iteration(&mut self, _: dflash_timeline::record::Iteration) {
        self.0 += 1;
    }
    fn sample(&mut self, _: dflash_timeline::record::Sample) {
        self.0 += 1;
    }
}

fn shifted(span: &dflash_timeline::record::Span, ns: i64) -> dflash_timeline::record::Span {
    let device = span.device.map(|mut device| {
        device.begin_ns += ns;
        device
    });
    dflash_timeline::record::Span { begin_ns: span.begin_ns + ns, device, ..*span }
}

/// The first seconds of the stream, which are written again and again.
fn events() -> Vec<Event> {
    let mut flushes = 0;
    let mut all = stream::events(true);
    let blocks = STRIDE_S * 4;
    all.retain(|event| {
        flushes += u64::from(matches!(event, Event::Flush(_)));
        flushes < blocks || (flushes == blocks && matches!(event, Event::Flush(_)))
    });
    all.shrink_to_fit();
    all
}

/// Memory of this process.
fn rss() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("VmRSS is empty")?.parse::<u64>()? << 10)
}

fn parts(run: &RunDir, extension: &str) -> Result<usize> {
    Ok(files(run.path(), extension)?.len())
}

fn size(directory: &Path, extension: &str) -> Result<u64> {
    Ok(files(directory, extension)?.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|m| m.len()).sum())
}

fn files(directory: &Path, extension: &str) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    Ok(found)
}
