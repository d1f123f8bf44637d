//! The profiler's own account.

use crate::support::{Builder, MS, on_gpu};
use dflash_reports::report::{Report, figures_csv, table};
use dflash_reports::stages::Window;
use dflash_reports::text::Look;
use dflash_reports::timeline::record::{Kind, LaneId, LaneTotals, Mark, Severity};

fn all() -> Window {
    Window::default()
}

#[test]
fn bare_iterations_count_for_the_throughput_and_for_no_stage() {
    let mut b = Builder::new().lane("drafter:0");
    for kind in [Kind::Bare, Kind::Train, Kind::Bare] {
        b = b.iteration(kind, MS, |_| ());
    }
    for i in &mut b.timeline.iterations {
        i.tokens = Some(100);
    }
    let report = Report::of(&b.timeline, &all()).unwrap();
    assert_eq!(report.stages.lanes[0].iterations, 1);
    assert_eq!((report.throughput.tokens, report.throughput.wall_ns), (Some(300), Some(3 * MS)));
}

#[test]
fn the_cost_is_computed_again_from_bare_iterations() {
    let mut b = Builder::new().lane("drafter:0");
    for i in 0..40_u64 {
        // Time drifts by a quarter; neighbours see the same, so the cost stays 1 %.
        let base = 10_000_000 + i * 62_500;
        let kind = if [1, 2].contains(&(i % 4)) == (i % 8 < 4) { Kind::Bare } else { Kind::Train };
        b = b.iteration(kind, if kind == Kind::Bare { base } else { base + base / 100 }, |_| ());
    }
    let report = Report::of(&b.timeline, &all()).unwrap();
    let lane = &report.profiler.bare[0];
    let cost = lane.cost.unwrap();
    assert_eq!((lane.iterations, lane.pairs), (20, 20));
    assert!(cost.low <= 0.01 && cost.high >= 0.01 && cost.high - cost.low < 0.02, "{cost:?}");
    assert!((cost.middle - 0.01).abs() < 2e-3, "{cost:?}");
}

#[test]
fn pairs_are_neighbours_only() {
    let mut b = Builder::new().lane("drafter:0");
    let kinds = [Kind::Bare, Kind::Bare, Kind::Eval, Kind::Bare, Kind::Train, Kind::Bare];
    for kind in kinds {
        b = b.iteration(kind, MS, |_| ());
    }
    b = b.numbered(9).iteration(Kind::Train, MS, |_| ());
    assert_eq!(Report::of(&b.timeline, &all()).unwrap().profiler.bare[0].pairs, 1, "the one at 4 has one partner");
    let mark = |time_ns, text: &str| Mark { time_ns, severity: Severity::Info, text: text.into() };
    b.timeline.marks = vec![mark(4_000_000, "level: stages -> layers"), mark(i64::MAX, "checkpoint")];
    assert_eq!(Report::of(&b.timeline, &all()).unwrap().profiler.bare[0].pairs, 1, "the mark comes before them");
    b.timeline.marks[0].time_ns += 2_000;
    assert_eq!(Report::of(&b.timeline, &all()).unwrap().profiler.bare[0].pairs, 0, "the one at 4 began before it");
}

#[test]
fn the_profilers_own_account() {
    let mut b = on_gpu();
    for i in 0..4 {
        b = b.iteration(Kind::Bare, 9 * MS + i, |_| ());
    }
    let b = b.counter("profiler.cost.drafter:0.low", "%", &[0.5, 0.1]).counter(
        "profiler.cost.drafter:0.high",
        "%",
        &[0.9, 0.4],
    );
    let b = b.counter("profiler.cost.drafter:0.calls", "%", &[0.3]).counter("profiler.cpu", "ns", &[0.0, 4e6, 1e7]);
    let b = b.counter("profiler.nvml.cpu", "ns", &[0.0, 1e6, 2e6]).counter("profiler.bytes", "bytes", &[0.0, 4096.0]);
    let mut timeline = b.timeline;
    let totals = |lane, dropped| LaneTotals { lane: LaneId(lane), emitted: 100, written: 100 - dropped, dropped };
    timeline.lane_totals = vec![totals(0, 7), totals(9, 0)];
    let mark = |text: &str| Mark { time_ns: 200_000_000, severity: Severity::Warning, text: text.into() };
    timeline.marks = vec![mark("level lowered to stages: max_overhead"), mark("checkpoint written")];
    let report = Report::of(&timeline, &all()).unwrap();
    let text = table(&report, Look::default());
    insta::assert_snapshot!(text[text.find("the profiler itself").unwrap()..], @r"
    the profiler itself
      lane          low    high  calls x cost  pairs  pairs low  pairs high  emitted  written  dropped
      drafter:0  0.10 %  0.40 %        0.30 %      1        N/A         N/A      100       93        7
      low, high: 95 % interval of what the instrumentation costs, as measured while it ran
      pairs: the same, computed anew from bare iterations and their instrumented neighbours
      drafter:0 takes 10.000 ms with and 9.000 ms without spans (4 bare; cost N/A: 1 of 6 pairs)
      profiler.cpu 10.0 ms, 0.50 % of one core
      profiler.nvml.cpu 2.0 ms, 0.10 % of one core
      profiler.bytes 4,096 bytes, 4,096 by second
      CPU of all threads of the profiler: 0.60 % of one core
      warning, after 0.2 s: level lowered to stages: max_overhead

    allocator: N/A (no counter allocator.*)

    GPUs: N/A (no counter gpu.*)

    device gaps
      lane       gaps  total ms   input   room   sync  launch-bound  of its time  unknown
      drafter:0     6    12.000  25.0 %  0.0 %  0.0 %        75.0 %        7.3 %       27
      by what the host did: it waited for input (*.wait), room (*.put), the device (sync.*), or was at work
      unknown: places where a device time is missing, so that no gap is known
      gaps between a lane's device spans; only a kernel capture tells more (dflash ctl kernels)
    ");
    let csv = String::from_utf8(figures_csv(&report).unwrap()).unwrap();
    assert!(csv.contains("1,profiler,0,drafter:0,,,measured_high_percent,0.4\n"), "{csv}");
    assert!(csv.contains("1,profiler,0,drafter:0,,,pairs_low_percent,\n"), "unknown is empty: {csv}");
}
