//! The report's forms.

use crate::support::{Builder, MS, small_run};
use dflash_reports::report::{Charts, Report, RunFacts, html, markdown, stages_csv, table};
use dflash_reports::stages::Window;
use dflash_reports::text::Look;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::Kind;

fn report(timeline: &Timeline) -> Report {
    Report::of(timeline, &Window::default()).unwrap()
}

#[test]
fn as_a_table() {
    insta::assert_snapshot!(table(&report(&small_run()), Look::default()), @r"
    1.0 s · 16,449 tokens/s
    drafter:0 limits: target:0 waits 33 % of the time for room

    target:0 on cpu: 20 iterations, CPU 50.0 %
      stage           clock  count  total s  mean ms  p50 ms  p90 ms  p95 ms  p99 ms  max ms    share  hint
      target.forward  host      20     0.12    6.095   6.090   6.170   6.180   6.190   6.190   66.9 %        █████▍
      target.put      host      20     0.06    3.000   3.000   3.000   3.000   3.000   3.000   32.9 %        ██▋
      residue         host      20     0.00    0.010   0.010   0.010   0.010   0.010   0.010    0.1 %
      total           host      20     0.18    9.105   9.100   9.180   9.190   9.200   9.200  100.0 %

    drafter:0 on cpu: 20 iterations (set apart: 1 warmup), CPU 50.0 %
      stage            clock  count  total s  mean ms  p50 ms  p90 ms  p95 ms  p99 ms  max ms    share  hint
      drafter.wait     host      20     0.00    0.020   0.020   0.020   0.020   0.020   0.020    0.3 %
      drafter.forward  host      20     0.06    3.010   3.009   3.017   3.018   3.019   3.019   49.5 %        ████
        drafter.layer  host      20     0.04    2.010   2.009   2.017   2.018   2.019   2.019   33.1 %
      drafter.loss     host      20     0.06    3.000   3.000   3.000   3.000   3.000   3.000   49.3 %        ████
      residue          host      20     0.00    0.050   0.050   0.050   0.050   0.050   0.050    0.8 %        ▏
      total            host      20     0.12    6.080   6.079   6.087   6.088   6.089   6.089  100.0 %

    records: 200 written, 0 dropped, 0 open, 0 negative, 0 unresolved, 0 misplaced

    queues
      queue     mean depth  max  holds   empty  full  readings
      features         2.0    4    N/A  50.0 %   N/A         3

    goodput
      drafters' time         s    share
      productive          0.12   11.9 %
      warm-up             0.90   88.1 %
      checkpoint          0.00    0.0 %
      eval                0.00    0.0 %
      stalled             0.00    0.0 %
      lost to a restart   0.00    0.0 %
      between iterations  0.00    0.0 %
      total               1.02  100.0 %

    the profiler itself
      cost by lane N/A (no counter profiler.cost.*, no bare iterations)
      CPU of all threads of the profiler: N/A of one core
    ");
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&report(&small_run())), @r"
    1.0 s · 16,449 tokens/s

    drafter:0 limits: target:0 waits 33 % of the time for room

    ### target:0 on cpu: 20 iterations, CPU 50.0 %

    | stage | clock | count | total s | mean ms | p50 ms | p90 ms | p95 ms | p99 ms | max ms | share | hint |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | target.forward | host | 20 | 0.12 | 6.095 | 6.090 | 6.170 | 6.180 | 6.190 | 6.190 | 66.9 % |  |
    | target.put | host | 20 | 0.06 | 3.000 | 3.000 | 3.000 | 3.000 | 3.000 | 3.000 | 32.9 % |  |
    | residue | host | 20 | 0.00 | 0.010 | 0.010 | 0.010 | 0.010 | 0.010 | 0.010 | 0.1 % |  |
    | total | host | 20 | 0.18 | 9.105 | 9.100 | 9.180 | 9.190 | 9.200 | 9.200 | 100.0 % |  |

    ### drafter:0 on cpu: 20 iterations (set apart: 1 warmup), CPU 50.0 %

    | stage | clock | count | total s | mean ms | p50 ms | p90 ms | p95 ms | p99 ms | max ms | share | hint |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | drafter.wait | host | 20 | 0.00 | 0.020 | 0.020 | 0.020 | 0.020 | 0.020 | 0.020 | 0.3 % |  |
    | drafter.forward | host | 20 | 0.06 | 3.010 | 3.009 | 3.017 | 3.018 | 3.019 | 3.019 | 49.5 % |  |
    | ↳ drafter.layer | host | 20 | 0.04 | 2.010 | 2.009 | 2.017 | 2.018 | 2.019 | 2.019 | 33.1 % |  |
    | drafter.loss | host | 20 | 0.06 | 3.000 | 3.000 | 3.000 | 3.000 | 3.000 | 3.000 | 49.3 % |  |
    | residue | host | 20 | 0.00 | 0.050 | 0.050 | 0.050 | 0.050 | 0.050 | 0.050 | 0.8 % |  |
    | total | host | 20 | 0.12 | 6.080 | 6.079 | 6.087 | 6.088 | 6.089 | 6.089 | 100.0 % |  |

    - records: 200 written, 0 dropped, 0 open, 0 negative, 0 unresolved, 0 misplaced

    ### queues

    | queue | mean depth | max | holds | empty | full | readings |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: |
    | features | 2.0 | 4 | N/A | 50.0 % | N/A | 3 |


    ### goodput

    | drafters' time | s | share |
    | --- | ---: | ---: |
    | productive | 0.12 | 11.9 % |
    | warm-up | 0.90 | 88.1 % |
    | checkpoint | 0.00 | 0.0 % |
    | eval | 0.00 | 0.0 % |
    | stalled | 0.00 | 0.0 % |
    | lost to a restart | 0.00 | 0.0 % |
    | between iterations | 0.00 | 0.0 % |
    | total | 1.02 | 100.0 % |


    ### the profiler itself

    - cost by lane N/A (no counter profiler.cost.\*, no bare iterations)
    - CPU of all threads of the profiler: N/A of one core
    ");
}

#[test]
fn as_csv() {
    let csv = stages_csv(&report(&small_run()).stages).unwrap();
    insta::assert_snapshot!(String::from_utf8(csv).unwrap(), @r"
    schema,rank,lane,device,stage,parent,depth,spans,iterations,host_total_ns,host_mean_ns,host_p50_ns,host_p95_ns,host_max_ns,share,device_iterations,device_total_ns,device_mean_ns,device_p50_ns,device_p95_ns,device_max_ns,hint,host_p90_ns,host_p99_ns,device_p90_ns,device_p99_ns
    1,0,target:0,cpu,target.forward,,0,20,20,121900000,6095000.0,6090000,6180000,6190000,0.669412,,,,,,,,6170000,6190000,,
    1,0,target:0,cpu,target.put,,0,20,20,60000000,3000000.0,3000000,3000000,3000000,0.329489,,,,,,,,3000000,3000000,,
    1,0,target:0,cpu,residue,,0,,20,200000,10000.0,10000,10000,10000,0.001098,,,,,,,,10000,10000,,
    1,0,target:0,cpu,total,,0,,20,182100000,9105000.0,9100000,9190000,9200000,1.000000,,,,,,,,9180000,9200000,,
    1,0,drafter:0,cpu,drafter.wait,,0,20,20,400000,20000.0,20000,20000,20000,0.003290,,,,,,,,20000,20000,,
    1,0,drafter:0,cpu,drafter.forward,,0,20,20,60190000,3009500.0,3009000,3018000,3019000,0.495024,,,,,,,,3017000,3019000,,
    1,0,drafter:0,cpu,drafter.layer,drafter.forward,1,40,20,40190000,2009500.0,2009000,2018000,2019000,0.330537,,,,,,,,2017000,2019000,,
    1,0,drafter:0,cpu,drafter.loss,,0,40,20,60000000,3000000.0,3000000,3000000,3000000,0.493462,,,,,,,,3000000,3000000,,
    1,0,drafter:0,cpu,residue,,0,,20,1000000,50000.0,50000,50000,50000,0.008224,,,,,,,,50000,50000,,
    1,0,drafter:0,cpu,total,,0,,20,121590000,6079500.0,6079000,6088000,6089000,1.000000,,,,,,,,6087000,6089000,,
    ");
}

#[test]
fn as_json() {
    let report = report(&small_run());
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["stages"]["lanes"][1]["iterations"], 20);
    assert_eq!(json["stages"]["lanes"][0]["rows"][0]["device"], serde_json::Value::Null);
    assert_eq!(json["verdict"]["verdict"], "limits");
    assert_eq!(json["queues"][0]["mean"], 2.0);
}

#[test]
fn colour_only_when_asked_for() {
    let report = report(&small_run());
    assert!(!table(&report, Look::default()).contains('\u{1b}'));
    assert!(table(&report, Look { color: true }).contains("\u{1b}[1m"));
}

#[test]
fn losses_and_damage_are_said_loudly() {
    let mut timeline = small_run();
    timeline.health.ended = false;
    timeline.health.bad_blocks = 2;
    timeline.health.skipped_bytes = 4096;
    timeline.health.problems.push("rank0-000001.dft: offset 512: bad CRC".into());
    timeline.totals.dropped = 7;
    let text = table(&report(&timeline), Look::default());
    let warnings: Vec<&str> = text.lines().filter(|line| line.starts_with("warning")).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r"
    warning: the timeline has no end yet: the run goes on, or it died and its last moments are lost
    warning: the timeline is torn: 2 damaged blocks, 4,096 bytes skipped
    warning: rank0-000001.dft: offset 512: bad CRC
    warning: 7 records were lost because the profiler could not keep up
    ");
}

/// A timeline without an end means one thing while the run goes on, and another once it is over.
#[test]
fn a_recording_that_stopped_before_its_run_is_said_in_every_form() {
    let mut timeline = small_run();
    timeline.health.ended = false;
    let mut report = report(&timeline);
    let warnings = |report: &Report| {
        let text = table(report, Look::default());
        text.lines().filter(|line| line.starts_with("warning")).map(str::to_owned).collect::<Vec<_>>()
    };
    let of = |state: &str, trouble: Option<&str>| {
        let (state, trouble) = (state.to_owned(), trouble.map(str::to_owned));
        Some(RunFacts { name: "full".into(), state, trouble, ..RunFacts::default() })
    };
    report.run = of("running", None);
    assert_eq!(warnings(&report), ["warning: the timeline has no end yet: the run goes on"]);
    report.run = of("died", None);
    assert_eq!(warnings(&report), ["warning: the timeline has no end: the run died, and its last moments are lost"]);
    report.run = of("finished", Some("the timeline is no longer written: no\u{1b} room"));
    let stopped = "the recording is incomplete: the timeline is no longer written: no\u{fffd} room";
    let no_end = "the timeline has no end, though the run has: its recording stopped before";
    assert_eq!(warnings(&report), [format!("warning: {stopped}"), format!("warning: {no_end}")]);
    assert!(markdown(&report).contains(&format!("> **Warning:** {stopped}")), "{}", markdown(&report));
    assert!(html(&report, &Charts::default()).contains(stopped));
    assert!(report.json().unwrap().contains("\"trouble\": \"the timeline is no longer written"));
}

#[test]
fn an_empty_timeline_is_reported_as_empty() {
    let report = report(&Timeline::default());
    assert!(table(&report, Look::default()).contains("no finished iteration was recorded yet"));
    assert_eq!(String::from_utf8(stages_csv(&report.stages).unwrap()).unwrap().lines().count(), 1);
    assert!(report.json().unwrap().contains("\"tokens_per_s\": null"));
}

#[test]
fn csv_quotes_what_needs_it() {
    let b = Builder::new().lane("odd, \"lane\"").iteration(Kind::Train, 0, |b| {
        b.span("a,b", MS);
    });
    let csv = String::from_utf8(stages_csv(&report(&b.timeline).stages).unwrap()).unwrap();
    assert!(csv.contains("1,0,\"odd, \"\"lane\"\"\",cpu,\"a,b\",,0,1,1,1000000,"), "{csv}");
}

#[test]
fn an_unknown_lane_is_refused_with_those_there_are() {
    let window = Window { lanes: vec!["drafter".into()], ..Window::default() };
    let error = Report::of(&small_run(), &window).unwrap_err().to_string();
    assert_eq!(error, "there is no lane `drafter`; the run has target:0, drafter:0");
}

#[test]
fn bare_iterations_show_what_spans_cost() {
    let b = Builder::new().lane("drafter:0").iteration(Kind::Bare, 3 * MS, |_| ()).iteration(Kind::Train, MS, |b| {
        b.span("drafter.loss", 3 * MS);
    });
    let b = b.counter("profiler.cpu", "ns", &[1e6, 5e6, 2e6]).counter("profiler.bytes", "bytes", &[0.0, 4096.0]);
    let text = table(&report(&b.timeline), Look::default());
    let cost = "drafter:0 takes 4.000 ms with and 3.000 ms without spans (1 bare; cost N/A: 1 of 6 pairs)";
    assert!(text.contains(cost), "{text}");
    assert!(text.contains("profiler.cpu 6.0 ms, 0.30 % of one core"), "{text}");
    assert!(text.contains("profiler.bytes 4,096 bytes, 4,096 by second"), "{text}");
}
