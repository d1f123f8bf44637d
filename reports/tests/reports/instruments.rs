//! Sections of the report that read counters, device times and samples.

use crate::support::{Builder, MS};
use dflash_reports::allocator::allocators;
use dflash_reports::flamegraph::{Options, Time, folded_text, svg};
use dflash_reports::gaps::gaps;
use dflash_reports::gpu::gpus;
use dflash_reports::report::{Report, figures_csv, table};
use dflash_reports::stages::{Hint, Window, stage_table};
use dflash_reports::text::Look;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, LaneId, LaneTotals, Mark, NameId, Severity, StackSample};
use proptest::prelude::*;

fn all() -> Window {
    Window::default()
}

/// 30 iterations of 10 ms on a GPU: forward runs ahead of the device, clip waits for it.
fn on_gpu() -> Builder {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for i in 0..30 {
        b = b.iteration(Kind::Train, 0, |b| {
            b.span("drafter.wait", MS).launched("drafter.forward", 2 * MS, 0, 5 * MS);
            b.nested("drafter.clip", MS, |b| {
                b.span("sync.norm", 3 * MS);
            });
            if i % 10 == 0 {
                b.launched("drafter.step", 3 * MS, 0, MS)
            } else {
                b.span("drafter.step", 3 * MS)
            };
        });
    }
    b
}

#[test]
fn hints_stand_beside_their_stages() {
    let table = stage_table(&on_gpu().timeline, &all());
    let lane = &table.lanes[0];
    let hint = |stage| lane.stage(stage).unwrap().hint;
    assert_eq!(hint("drafter.forward"), Some(Hint::Asynchronous));
    assert_eq!(hint("drafter.clip"), Some(Hint::Sync), "three quarters of it is sync.norm");
    assert_eq!((hint("drafter.wait"), hint("drafter.step")), (None, None), "three device times are too few");
}

#[test]
fn sampled_device_times_are_averaged_over_those_that_there_are() {
    let table = stage_table(&on_gpu().timeline, &all());
    let lane = &table.lanes[0];
    let step = lane.stage("drafter.step").unwrap();
    assert_eq!((step.host.count, step.device.map(|d| (d.count, d.p50_ns))), (30, Some((3, MS))));
    let total = lane.total_device.map(|d| (d.count, d.p50_ns));
    assert_eq!(total, Some((3, 6 * MS)), "an iteration without the step's device time would pass for a shorter one");
}

#[test]
fn part_of_a_stages_device_time_is_none() {
    let b = Builder::new().lane_on("drafter:0", "cuda:0").iteration(Kind::Train, 0, |b| {
        b.launched("drafter.loss", MS, 0, MS).span("drafter.loss", MS);
    });
    assert_eq!(stage_table(&b.timeline, &all()).lanes[0].stage("drafter.loss").unwrap().device, None);
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

#[test]
fn allocations_are_charged_to_stages_and_late_ones_told_apart() {
    let b = on_gpu(); // iteration 20 ends at 210.001 ms
    let end = b.timeline.iterations[20].begin_ns + b.timeline.iterations[20].duration_ns as i64;
    let b =
        b.readings("allocator.cuda:0.device_allocations.drafter.forward", "count", &[(end - 1, 3.0), (end + 1, 2.0)]);
    let b = b.readings("allocator.cuda:0.device_allocations", "count", &[(end, 4.0)]);
    let b = b.readings("allocator.cuda:0.retries.drafter.step", "count", &[(end, 1.0)]);
    let b = b.readings("allocator.cuda:0.reserved", "bytes", &[(0, 1e9), (end, 3e9)]);
    let b = b.readings("allocator.cuda:1.active", "bytes", &[(0, 1e9)]);
    let found = allocators(&b.timeline, &all());
    let rows: Vec<_> = found[0].stages.iter().map(|s| (s.stage.as_deref(), s.device_allocations, s.retries)).collect();
    assert_eq!(rows, [(None, 4, 0), (Some("drafter.forward"), 5, 0), (Some("drafter.step"), 0, 1)]);
    assert_eq!(found[0].late_device_allocations, Some(2), "what moved up to the end of iteration 20 is early");
    assert_eq!(found[0].reserved.map(|r| (r.mean, r.max)), Some((2e9, 3e9)));
    assert_eq!(found[1].late_device_allocations, None, "no lane on that device has done 20 iterations");
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("  device allocations after iteration 20: N/A\n"), "known of one device only: {text}");
    let mut one = b.timeline;
    one.samples.retain(|sample| sample.counter.0 < 4);
    let text = table(&Report::of(&one, &all()).unwrap(), Look::default());
    assert!(text.contains("  device allocations after iteration 20: 2\n"), "{text}");
}

#[test]
fn sensors_and_energy_by_token() {
    let b = on_gpu().readings("gpu.0.power", "W", &[(0, 100.0), (1, 300.0), (2, f64::NAN)]);
    let b = b.readings("gpu.0.throttle", "", &[(0, 1.0), (1, 0.0), (2, 4.0), (3, 5.0)]);
    // Iterations 1 to 10 end between the readings: 1,000 tokens.
    let b = b.readings("gpu.0.energy", "mJ", &[(11_000_000, 5_000.0), (110_500_000, 9_000.0)]);
    let b = b.readings("gpu.0.nvlink.tx", "bytes/s", &[(0, 7.0)]);
    let found = gpus(&b.timeline, &all());
    let gpu = &found[0];
    let sensor = |name| gpu.sensors.iter().find(|s| s.sensor == name).unwrap().range;
    assert_eq!(sensor("power").map(|r| (r.readings, r.mean, r.min, r.max)), Some((2, 200.0, 100.0, 300.0)));
    assert_eq!(sensor("temperature"), None);
    assert_eq!(sensor("nvlink.tx").map(|r| r.mean), Some(7.0));
    assert_eq!(gpu.throttled_share, Some(0.5), "idling is no throttling");
    assert_eq!((gpu.energy_j, gpu.energy_per_token_j), (Some(4.0), Some(0.004)));
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("0: energy 4 J, 4.00 mJ by token; throttled in 50.0 % of the readings"), "{text}");
    assert!(text.contains("  0       temperature          N/A          N/A          N/A\n"), "{text}");
    assert!(!text.contains("together:"), "{text}");
    let b = b.readings("gpu.1.energy", "J", &[(11_000_000, 5.0), (110_500_000, 7.0)]);
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("  together: energy 6 J, 6.00 mJ by token\n"), "{text}");
}

#[test]
fn gaps_by_what_the_host_did() {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..2 {
        b = b.iteration(Kind::Train, 0, |b| {
            // Device: 2..4 ms and 8..10 ms of the iteration; between them the host waits in sync and launches.
            b.span("drafter.wait", 2 * MS).launched("drafter.forward", 3 * MS, 0, 2 * MS);
            b.nested("drafter.clip", MS, |b| {
                b.span("sync.norm", 2 * MS);
            });
            b.launched("drafter.step", 2 * MS, 0, 2 * MS);
        });
    }
    let found = gaps(&b.timeline, &all());
    let lane = &found[0];
    assert_eq!((lane.gaps, lane.total_ns, lane.device_ns), (3, 10 * MS, 8 * MS));
    assert_eq!((lane.input_ns, lane.room_ns, lane.sync_ns, lane.launch_ns), (2 * MS, 0, 4 * MS, 4 * MS));
    assert_eq!(lane.unknown, 0);
}

#[test]
fn no_gap_is_guessed_where_a_device_time_is_missing() {
    let found = gaps(&on_gpu().timeline, &all());
    assert_eq!(found[0].unknown, 27, "the steps that were not timed");
    // Forward ends after 6 ms, the step begins after 7: one gap in each of three iterations, one behind each of them.
    assert_eq!(found[0].gaps, 6);
    let b = Builder::new().lane_on("drafter:0", "cuda:0");
    let pass = |b: &mut Builder| {
        b.launched("drafter.forward", 3 * MS, 0, MS);
    };
    let b = b.iteration(Kind::Train, 0, pass).iteration(Kind::Bare, 9 * MS, |_| ()).iteration(Kind::Train, 0, pass);
    assert_eq!(gaps(&b.timeline, &all())[0].gaps, 0, "a bare iteration hides what its device did");
    assert!(gaps(&Builder::new().lane("drafter:0").timeline, &all()).is_empty());
}

proptest! {
    /// A stream runs what it is given in order, as soon as it can; each nanosecond is asked what it was.
    #[test]
    fn gaps_agree_with_brute_force(passes in prop::collection::vec(prop::collection::vec((0_usize..5, 0_u64..12, 0_u64..12), 0..6), 1..5)) {
        const NAMES: [&str; 5] = ["a.wait", "a.put", "sync.x", "a.forward", "a.step"];
        let mut free = i64::MIN;
        let mut b = Builder::new().lane_on("a", "cuda:0");
        for pass in &passes {
            b = b.iteration(Kind::Train, 1, |b| for (name, host, device) in pass {
                if *name < 3 {
                    b.span(NAMES[*name], *host);
                    continue;
                }
                b.device_span(NAMES[*name], *host, *device);
                let time = b.timeline.spans.last_mut().unwrap().device.as_mut().unwrap();
                time.begin_ns = time.begin_ns.max(free);
                free = time.begin_ns + *device as i64;
            });
        }
        let spans = || b.timeline.spans.iter();
        let devices: Vec<(i64, i64)> =
            spans().filter_map(|s| s.device).map(|d| (d.begin_ns, d.begin_ns + d.duration_ns as i64)).collect();
        let Some(lane) = gaps(&b.timeline, &all()).pop() else {
            prop_assert!(devices.is_empty());
            return Ok(());
        };
        let mut expected = [0_u64; 4];
        for at in devices[0].0..devices[devices.len() - 1].1 {
            if !devices.iter().any(|(begin, end)| (*begin..*end).contains(&at)) {
                let host = spans().find(|s| (s.begin_ns..s.begin_ns + s.duration_ns as i64).contains(&at));
                let name = host.map_or("", |s| b.timeline.name(s.name));
                expected[NAMES.iter().position(|n| *n == name).unwrap_or(3).min(3)] += 1;
            }
        }
        prop_assert_eq!([lane.input_ns, lane.room_ns, lane.sync_ns, lane.launch_ns], expected);
        prop_assert_eq!(lane.total_ns, expected.iter().sum::<u64>());
    }
}

#[test]
fn without_a_capture_nothing_is_called_idle() {
    let text = table(&Report::of(&on_gpu().timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("device gaps") && !text.contains("idle"), "{text}");
}

fn sampled() -> Timeline {
    let mut timeline = Builder::new().lane("drafter:0").timeline;
    timeline.names =
        ["drafter.backward", "main", "at::mm; 3", "pt_autograd_0", "idle loop"].map(str::to_owned).to_vec();
    let stack = |lane: Option<u32>, spans: &[u32], frames: &[u32]| StackSample {
        time_ns: 5,
        tid: 7,
        thread: NameId(3),
        lane: lane.map(LaneId),
        iteration: None,
        spans: spans.iter().map(|id| NameId(*id)).collect(),
        frames: frames.iter().map(|id| NameId(*id)).collect(),
    };
    timeline.stacks = vec![stack(Some(0), &[0], &[1, 2]), stack(None, &[], &[4]), stack(Some(0), &[0], &[1, 2])];
    timeline
}

#[test]
fn cpu_samples_stand_below_lane_and_spans() {
    insta::assert_snapshot!(folded_text(&sampled(), &all(), Time::Cpu).unwrap(), @r"
    drafter:0;drafter.backward;main;at::mm:_3 2
    pt_autograd_0;idle_loop 1
    ");
    let options = Options { time: Time::Cpu, no_javascript: true, ..Options::default() };
    let text = String::from_utf8(svg(&sampled(), &options).unwrap()).unwrap();
    assert!(text.contains("<title>drafter.backward (2 samples, 66.67%)"), "{text}");
    let of_lane = Window { lanes: vec!["drafter:0".into()], ..all() };
    assert_eq!(folded_text(&sampled(), &of_lane, Time::Cpu).unwrap().lines().count(), 1);
}

#[test]
fn no_cpu_samples_is_said_with_the_way_out() {
    let error = folded_text(&Timeline::default(), &all(), Time::Cpu).unwrap_err().to_string();
    assert!(error.contains("no CPU sample was recorded") && error.contains("dflash ctl cpu"), "{error}");
    assert_eq!(Report::of(&Timeline::default(), &all()).unwrap().cpu_samples, None);
    let b = Builder::new().counter("cpu.samples", "samples", &[10.0, 950.0]).counter("cpu.rate", "Hz", &[97.5]);
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("950 samples taken, N/A lost, 97.5 a second"), "{text}");
}
