//! GPUs that fail, in part or as a whole, and what that does to the others.

use std::time::Duration;

use super::simulated::{Machine, SECOND, card, mig};
use crate::NvmlOptions;
use crate::on::samplers::nvml::device::RETRY_EVERY;
use crate::on::samplers::nvml::gpus::{Fault, Query};

#[test]
fn tiers_are_asked_at_their_times() {
    let machine = Machine::new(vec![card(1)]);
    let mut sink = machine.sink();
    let options = NvmlOptions { pcie: true, ..NvmlOptions::default() };
    let mut watch = machine.start(&options, &mut sink).unwrap();
    machine.run(&mut watch, 30 * SECOND + SECOND / 4, &mut sink);
    // The first at the start, the next on the second.
    assert_eq!(machine.asked(0, Query::Utilization), (0..=30).map(|s| s * 1000).collect::<Vec<_>>());
    assert_eq!(machine.asked(0, Query::Energy), [0, 10_000, 20_000, 30_000]);
    assert_eq!(machine.asked(0, Query::PcieRx), [500, 10_500, 20_500]);
    assert_eq!(machine.asked(0, Query::PcieTx), [5500, 15_500, 25_500]);
    // Of NVLink a rate is recorded, so one less.
    assert_eq!((sink.count("gpu.cuda:0.nvlink.tx"), sink.count("gpu.cuda:0.energy")), (3, 4));
    let rate = sink.readings.last("gpu.cuda:0.nvlink.tx").unwrap();
    assert!((rate - 2e9).abs() < 2e6, "{rate}");
    assert_eq!(sink.marks.len(), 1, "{:?}", sink.marks);
}

#[test]
fn without_the_wish_pcie_is_never_asked() {
    let machine = Machine::new(vec![card(1)]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    machine.run(&mut watch, 60 * SECOND, &mut sink);
    assert_eq!(machine.asked(0, Query::PcieRx).len() + machine.asked(0, Query::PcieTx).len(), 0);
}

#[test]
fn a_lost_gpu_is_said_once_tried_rarely_and_comes_back() {
    let mut lost = card(1);
    lost.lost = 5 * SECOND + SECOND / 2..200 * SECOND;
    let machine = Machine::new(vec![lost, card(2)]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    machine.run(&mut watch, 300 * SECOND, &mut sink);
    insta::assert_snapshot!(sink.marks[1..].join("\n"), @r"
    6.0 s Warning: cuda:0 (NVIDIA H200, GPU-1111 at 00000000:1A:00.0) is lost: device fell off the bus; nothing of it is sampled, it is tried again each 60 s
    250.0 s Info: cuda:0 (NVIDIA H200, GPU-1111 at 00000000:1A:00.0) answers again
    ");
    let calls =
        machine.log.borrow().iter().filter(|(at, gpu, _)| *gpu == 0 && *at > 6 * SECOND && *at < 200 * SECOND).count();
    assert_eq!(calls, 194 / RETRY_EVERY.as_secs() as usize, "one call each minute");
    assert_eq!(machine.asked(1, Query::Power).len(), 301, "the other goes on");
    assert!(sink.count("gpu.cuda:0.power") > 50);
}

#[test]
fn a_gpu_that_is_lost_from_the_start_is_asked_everything_when_it_comes_back() {
    let mut lost = card(1);
    lost.lost = Duration::ZERO..50 * SECOND;
    lost.lacks = vec![Query::Nvlink];
    let machine = Machine::new(vec![lost]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    assert_eq!(machine.log.borrow().len(), 1, "after the first answer no more is asked");
    machine.run(&mut watch, 100 * SECOND, &mut sink);
    assert_eq!(machine.asked(0, Query::Nvlink).len(), 1);
    assert!(sink.count("gpu.cuda:0.power") > 35);
}

#[test]
fn a_query_that_fails_for_a_while_rests_and_the_others_go_on() {
    let mut weak = card(1);
    weak.fails = vec![(Query::Power, 10 * SECOND..100 * SECOND)];
    let machine = Machine::new(vec![weak]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    machine.run(&mut watch, 150 * SECOND, &mut sink);
    insta::assert_snapshot!(sink.marks[1..].join("\n"), @r"
    12.0 s Warning: cuda:0 does not give its power: an internal driver error occurred; it is asked again each 60 s
    134.0 s Info: cuda:0 gives its power again
    ");
    assert_eq!(machine.asked(0, Query::Temperature).len(), 151);
    // Ten at first, three failures, one try a minute later, and then each second again.
    let asked = machine.asked(0, Query::Power);
    assert_eq!(asked.iter().filter(|at| (10_000..100_000).contains(*at)).count(), 4, "{asked:?}");
}

#[test]
fn a_moment_of_failure_is_a_gap_and_no_news() {
    let mut weak = card(1);
    weak.fails = [10, 15, 20].map(|from| (Query::Power, from * SECOND..(from + 2) * SECOND)).to_vec();
    let machine = Machine::new(vec![weak]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    machine.run(&mut watch, 29 * SECOND, &mut sink);
    assert_eq!((sink.count("gpu.cuda:0.power"), sink.marks.len()), (24, 1), "two in a row are not three");
}

#[test]
fn cost_is_accounted_call_by_call() {
    let machine = Machine::new(vec![card(1)]);
    let mut sink = machine.sink();
    let mut watch = machine.start(&NvmlOptions::default(), &mut sink).unwrap();
    machine.run(&mut watch, 9 * SECOND, &mut sink);
    let calls = machine.log.borrow().len();
    assert_eq!(calls, 10 * Query::FAST.len() + 2);
    assert_eq!(sink.readings.last("profiler.nvml.calls"), Some(calls as f64));
    assert_eq!(sink.readings.last("profiler.nvml.cpu"), Some(machine.cpu_ns.get() as f64));
    assert_eq!(sink.readings.last("sampler.nvml.worst"), Some(3370.0));
    assert_eq!(sink.readings.samples[0], ("profiler.nvml.cpu".to_owned(), "ns", 0.0), "its growth is all of it");
}

#[test]
fn a_library_that_is_slow_is_asked_less_often() {
    let mut machine = Machine::new(vec![card(1)]);
    machine.slower = SECOND / 2;
    let mut sink = machine.sink();
    let options = NvmlOptions { slow_every: 1000 * SECOND, ..NvmlOptions::default() };
    let mut watch = machine.start(&options, &mut sink).unwrap();
    machine.run(&mut watch, 100 * SECOND, &mut sink);
    // A turn takes 4.1 s and is followed by a rest up to the next full second; the first is late, after the start.
    let turns = machine.asked(0, Query::Utilization)[2..].to_vec();
    assert!(turns.len() > 10 && turns.iter().all(|at| at % 5000 == turns[0] % 5000 && at % 1000 == 0), "{turns:?}");
}

#[test]
fn nothing_to_sample_is_said_once() {
    let mut broken = Machine::new(vec![card(1)]);
    broken.broken = Some(Fault::Failed("an internal driver error occurred".to_owned()));
    for (machine, expected) in [
        (broken, "0.0 s Warning: no GPU is sampled: an internal driver error occurred"),
        (Machine::new(Vec::new()), "0.0 s Info: no GPU is sampled: of the machine's 0 this process uses none"),
    ] {
        let mut sink = machine.sink();
        assert!(machine.start(&NvmlOptions::default(), &mut sink).is_none());
        assert_eq!(sink.marks, [expected]);
    }
}

#[test]
fn all_devices_adds_those_of_others() {
    let machine = Machine::new(vec![card(1), mig(2, 0)]);
    let mut sink = machine.sink();
    let options = NvmlOptions { all_devices: true, ..NvmlOptions::default() };
    machine.start(&options, &mut sink).unwrap();
    assert_eq!((sink.count("gpu.cuda:0.memory.used"), sink.count("gpu.cuda:0.power")), (1, 0));
    assert_eq!(sink.count("gpu.nvml:0.power"), 1);
}
