//! Recordings changed at random: whatever a file holds, its readers end, say what is wrong and make nothing up.
//!
//! Half of the changed blocks get a checksum that holds, since else none of them would reach what decodes it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dflash_timeline::record::{Flow, Iteration, Mark, Sample, Span, StackSample, Totals};
use dflash_timeline::{Error, ReadOptions, SegmentWriter, Tail, Timeline, Visit, read, read_with, visit};

use crate::stream::{self, Dice, Event};
use crate::support::{Run, SEGMENT, small};
use crate::write::Written;

/// Cases of the short form.
const CASES: u64 = 60;
/// What is taken of a recording, so that a case is quick.
const LONGEST: usize = 40_000;
const HEADER: usize = 48;

#[test]
fn changed_recordings_are_read() {
    let sources = sources();
    (0..CASES).for_each(|seed| case(&sources, seed));
}

#[test]
#[ignore = "takes SECONDS (600 unless told): make fuzz"]
fn for_long() {
    let seconds = std::env::var("SECONDS").map_or(600, |text| text.parse().unwrap());
    let (sources, begin, mut seed) = (sources(), Instant::now(), CASES);
    while begin.elapsed() < Duration::from_secs(seconds) {
        case(&sources, seed);
        seed += 1;
    }
    assert!(seed > CASES, "SECONDS must be more than 0");
}

/// Segments of all versions: those in tests/data, and some written now.
fn sources() -> Vec<Vec<u8>> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = [1, 2, 3].map(|n| crate_dir.join(format!("tests/data/version-{n}.dft"))).to_vec();
    for entry in fs::read_dir(crate_dir.join("../../tests/data/recordings")).unwrap() {
        paths.push(entry.unwrap().path().join("timeline/rank0-000001.dft"));
    }
    paths.sort();
    assert!(paths.len() > 4, "{paths:?}");
    let mut sources: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let run = Run::new();
    small(&run);
    sources.push(run.bytes());
    sources.push(written());
    sources.iter_mut().for_each(|bytes| bytes.truncate(LONGEST));
    sources
}

/// A stream with device times, many blocks of it.
fn written() -> Vec<u8> {
    let (run, mut written) = (Run::new(), Written::default());
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    stream::introduce(&mut writer);
    let events: Vec<Event> = stream::events(true).into_iter().take(3_000).collect();
    written.write(&mut writer, &events).unwrap();
    writer.end(&[], Totals { emitted: written.records, ..Totals::default() }).unwrap();
    run.bytes()
}

/// A case is the same each time: its number is all that a failure needs to say.
fn case(sources: &[Vec<u8>], seed: u64) {
    let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = pick(sources, &mut dice).clone();
    for _ in 0..=dice.below(4) {
        change(&mut bytes, pick(sources, &mut dice), &mut dice);
        bytes.truncate(2 * LONGEST);
    }
    let mended = dice.below(2) == 0;
    if mended {
        mend(&mut bytes);
    }
    let checked = catch_unwind(AssertUnwindSafe(|| check(&bytes, mended, &mut dice)));
    assert!(checked.is_ok(), "case {seed}");
}

fn pick<'a>(sources: &'a [Vec<u8>], dice: &mut Dice) -> &'a Vec<u8> {
    &sources[dice.below(sources.len() as u64) as usize]
}

/// A random stretch, of mostly a few bytes.
fn stretch(bytes: &[u8], dice: &mut Dice) -> std::ops::Range<usize> {
    let begin = dice.below(bytes.len() as u64 + 1) as usize;
    let most = 1 << dice.below(13);
    begin..(begin + dice.below(most) as usize).min(bytes.len())
}

fn change(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let place = stretch(bytes, dice);
    match dice.below(7) {
        0 => bytes[place].iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
        1 => bytes[place].fill(0),
        2 => bytes.truncate(place.start),
        3 => drop(bytes.drain(place)),
        4 => drop(bytes.splice(place, other[stretch(other, dice)].to_vec())),
        _ if bytes.is_empty() => {}
        _ => {
            for _ in 0..=dice.below(8) {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
        }
    }
}

/// Makes the checksums hold of all that looks like a block, and its lengths agree.
fn mend(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = bytes.get_mut(at..).filter(|rest| rest.len() >= HEADER) {
        let length = u32::from_le_bytes(block[16..20].try_into().unwrap()) as usize;
        if !block.starts_with(b"DFTB") || block.len() < HEADER + length {
            at += 1;
            continue;
        }
        block.copy_within(16..20, 20);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&block[..44]), &block[HEADER..HEADER + length]);
        block[44..48].copy_from_slice(&crc.to_le_bytes());
        at += HEADER + length;
    }
}

/// Counts what it is shown.
#[derive(Default)]
struct Count(usize);

impl Visit for Count {
    fn span(&mut self, _: Span) {
        self.0 += 1;
    }
    fn iteration(&mut self, _: Iteration) {
        self.0 += 1;
    }
    fn sample(&mut self, _: Sample) {
        self.0 += 1;
    }
    fn flow(&mut self, _: Flow) {
        self.0 += 1;
    }
    fn mark(&mut self, _: Mark) {
        self.0 += 1;
    }
    fn stack(&mut self, _: StackSample) {
        self.0 += 1;
    }
}

fn records(timeline: &Timeline) -> usize {
    let Timeline { spans, iterations, samples, flows, marks, stacks, .. } = timeline;
    spans.len() + iterations.len() + samples.len() + flows.len() + marks.len() + stacks.len()
}

/// In any order: what is missing is said as soon as it is known.
fn problems(timeline: &Timeline) -> Vec<&String> {
    let mut problems: Vec<&String> = timeline.health.problems.iter().collect();
    problems.sort();
    problems
}

fn check(bytes: &[u8], mended: bool, dice: &mut Dice) {
    let run = Run::new();
    fs::create_dir_all(run.dir.timeline_dir()).unwrap();
    fs::write(run.segment(1), bytes).unwrap();
    let whole = match read(&run.dir) {
        Ok(timeline) => timeline,
        Err(Error::TooNew { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert!(records(&whole) <= bytes.len(), "a record takes a byte at least");
    assert!(whole.health.skipped_bytes <= bytes.len() as u64, "{:?}", whole.health);
    assert!(whole.spans.is_sorted_by_key(|s| (s.lane, s.begin_ns, s.depth)));
    let known = |s: &Span| whole.lane(s.lane).is_some() && (s.name.0 as usize) < whole.names.len();
    assert!(whole.spans.iter().all(known) && whole.iterations.iter().all(|i| whole.lane(i.lane).is_some()));
    assert!(whole.samples.iter().all(|s| (s.counter.0 as usize) < whole.counters.len()));
    // One by one: of a block that turns out to make no sense, what came before that is shown, too.
    let mut count = Count::default();
    let shown = visit(&run.dir, &ReadOptions::default(), &mut count).unwrap();
    assert!(count.0 >= records(&whole), "{} of {}", count.0, records(&whole));
    assert_eq!(problems(&shown), problems(&whole));
    assert_eq!((shown.totals, &shown.lane_totals), (whole.totals, &whole.lane_totals));
    assert_eq!((&shown.names, &shown.lanes, &shown.counters), (&whole.names, &whole.lanes, &whole.counters));
    let (from, length) = (dice.below(1 << 48) as i64, dice.below(1 << 40) as i64);
    let part = read_with(&run.dir, &ReadOptions { from_ns: Some(from), to_ns: Some(from + length) }).unwrap();
    assert!(records(&part) <= records(&whole));
    // While it grows: all is found that is found at once.
    let cut = dice.below(bytes.len() as u64 + 1) as usize;
    fs::write(run.segment(1), &bytes[..cut]).unwrap();
    let mut tail = Tail::open(&run.dir).unwrap().from_start();
    tail.poll().unwrap();
    fs::write(run.segment(1), bytes).unwrap();
    while tail.poll().unwrap() {}
    // With checksums made to hold, a block may lie within another one, and be found while that is not whole.
    assert!(mended || records(tail.timeline()) == records(&whole), "{:?}", tail.timeline().health);
}
