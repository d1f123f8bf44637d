//! Accumulators by name.

use std::time::Duration;

use dflash_profiler::{Kind, Level, ProfileStats, add_time, begin_iteration, set_level, span, take_stats};

use crate::support::Recording;

const MS: Duration = Duration::from_millis(1);

#[test]
fn times_that_no_span_took_stand_beside_the_stages() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("stage");
        add_time("decode", 30 * MS);
        add_time("decode", 10 * MS);
        add_time("fetch", 5 * MS);
    }
    let stats = take_stats();
    assert_eq!(stats.iter().map(|s| s.name).collect::<Vec<_>>(), ["stage", "decode", "fetch", "residue", "total"]);
    assert_eq!((stats[1].count, stats[1].total, stats[1].mean_ms()), (2, 40 * MS, 20.0));
    let covered: Duration = stats.iter().filter(|s| ["stage", "residue"].contains(&s.name)).map(|s| s.total).sum();
    assert!(covered.abs_diff(stats[4].total) < Duration::from_micros(1), "the stages and the residue are the total");
    add_time("decode", MS);
    assert_eq!(take_stats().iter().map(|s| (s.name, s.total)).collect::<Vec<_>>(), [("decode", MS)]);
    assert!(take_stats().is_empty());
    set_level(Level::Off);
    add_time("decode", MS);
    assert!(take_stats().is_empty());
    drop(lane);
    add_time("decode", MS);
    recording.finish();
}

#[test]
fn a_loop_without_a_profiler_may_have_stats_or_not() {
    fn step(stats: &mut Option<ProfileStats>) {
        if let Some(stats) = stats {
            stats.add_time("forward", 2 * MS);
            stats.add_time("backward", 4 * MS);
        }
    }
    let (mut none, mut some) = (None, Some(ProfileStats::default()));
    (0..3).for_each(|_| (step(&mut none), step(&mut some)).0);
    let mut stats = some.unwrap();
    assert_eq!((stats.count("forward"), stats.total("backward"), stats.mean("backward")), (3, 12 * MS, Some(4 * MS)));
    assert_eq!((stats.count("?"), stats.mean("?")), (0, None));
    assert_eq!(stats.stats().len(), 2);
    stats.reset();
    assert_eq!((stats.count("forward"), stats.take().len()), (0, 0));
}
