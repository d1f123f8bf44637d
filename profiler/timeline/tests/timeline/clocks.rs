//! Ranks of several hosts in one directory: their times are read on rank 0's clock.

use std::fs;

use dflash_timeline::record::{Iteration, Mark, Sample, Span};
use dflash_timeline::{ReadOptions, RunDir, Shift, Tail, Timeline, Visit, read, read_with, visit};

use crate::support::{Run, small, small_of};

pub const MS: i64 = 1_000_000;
pub const DAY: i64 = 86_400_000 * MS;

/// Both ranks did the same at the same time; rank 1's clock lags behind, and it says so.
fn two_hosts(lag_ns: i64, says: i64, uncertainty: u64) -> Run {
    let run = Run::new();
    small(&run);
    small_of(&run, 1, lag_ns, Some((says, uncertainty)));
    run
}

/// Without what says how far the clocks are apart.
fn plain(mut timeline: Timeline) -> Timeline {
    timeline.shifts.clear();
    let counters = &timeline.counters;
    let told = |s: &Sample| counters.get(s.counter.0 as usize).is_some_and(|c| c.name.starts_with("clock."));
    timeline.samples.retain(|sample| !told(sample));
    timeline
}

/// What a visitor hears, less the lane texts.
#[derive(Debug, Default, PartialEq)]
pub struct Heard(pub Vec<Span>, Vec<Iteration>, Vec<Mark>);

impl Visit for Heard {
    fn span(&mut self, span: Span) {
        self.0.push(span);
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.1.push(iteration);
    }

    fn mark(&mut self, mark: Mark) {
        self.2.push(mark);
    }
}

pub fn heard(run: &RunDir, options: &ReadOptions) -> Heard {
    let mut heard = Heard::default();
    visit(run, options, &mut heard).unwrap();
    heard
}

#[test]
fn every_record_of_another_host_is_moved_to_the_clock_of_rank_0() {
    let same = two_hosts(0, 0, 10);
    let expected = read(&same.dir).unwrap();
    assert!(expected.shifts.is_empty() && expected.spans.len() > 8 && expected.open.len() == 1, "{expected:?}");
    assert!(expected.spans.iter().any(|span| span.device.is_some_and(|device| device.begin_ns == 24_000)));
    for lag_ns in [50 * MS, -50 * MS, 3 * DAY, -41 * DAY] {
        let run = two_hosts(lag_ns, lag_ns, 20_000);
        let timeline = read(&run.dir).unwrap();
        assert_eq!(
            timeline.shifts.iter().map(|(rank, shift)| (*rank, shift.first_ns())).collect::<Vec<_>>(),
            [(1, lag_ns)]
        );
        assert_eq!(plain(timeline.clone()), plain(expected.clone()), "{lag_ns}");
        let mut tail = Tail::open(&run.dir).unwrap();
        tail.poll().unwrap();
        assert_eq!(tail.timeline(), &timeline, "{lag_ns}");
        // A stretch of time is one of rank 0's clock, whichever blocks hold it.
        for (from_ns, to_ns) in [(None, None), (Some(15_000), Some(19_500)), (Some(20_500), None)] {
            let options = ReadOptions { from_ns, to_ns };
            assert_eq!(heard(&run.dir, &options), heard(&same.dir, &options), "{lag_ns} {options:?}");
            let [own, other] = [&run, &same].map(|run| plain(read_with(&run.dir, &options).unwrap()));
            assert_eq!(own, other, "{lag_ns} {options:?}");
        }
    }
}

#[test]
fn clocks_that_are_one_within_what_is_uncertain_are_left_alone() {
    for (says, uncertainty) in [(900_000, 0), (-5 * MS, 4_500_000)] {
        let run = two_hosts(0, says, uncertainty);
        let timeline = read(&run.dir).unwrap();
        assert!(timeline.shifts.is_empty());
        assert_eq!(plain(timeline), plain(read(&two_hosts(0, 0, 0).dir).unwrap()));
    }
    // Rank 0's own word moves nothing.
    let run = Run::new();
    small_of(&run, 0, 0, Some((DAY, 0)));
    assert!(read(&run.dir).unwrap().shifts.is_empty());
}

#[test]
fn each_attempt_has_a_clock_of_its_own() {
    let run = two_hosts(50 * MS, 50 * MS, 10);
    // It was started again, on another host, which was not asked yet when its first block was written.
    small_of(&run, 1, 3 * DAY, Some((3 * DAY, 10)));
    let (whole, files) = (read(&run.dir).unwrap(), fs::read_dir(run.dir.timeline_dir()).unwrap().count());
    assert_eq!((whole.shifts.get(&1).map(Shift::first_ns), files), (Some(3 * DAY), 3));
    let (first, last) = whole.extent().unwrap();
    assert!(first > 0 && last < MS, "{first} {last}");
}
