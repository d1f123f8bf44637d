//! Moments as a lane records them: no collector looks at them here.

use std::sync::atomic::Ordering;

use super::super::lane::{DeviceLane, LOST};
use super::Bench;
use crate::DeviceStream;
use crate::sim::{SimDevice, SimStream};

/// A lane whose moments nobody times.
fn lane(bench: &Bench) -> DeviceLane {
    bench.hub.device.stop.store(true, Ordering::Relaxed);
    DeviceLane::new(&bench.hub, &bench.shared)
}

#[test]
fn moments_that_no_work_lies_between_are_one() {
    let bench = Bench::new(0.0);
    let mut lane = lane(&bench);
    let us = |us: u64| bench.hub.clock.ticks_in(us * 1_000);
    let [a, b] = [0, 1].map(|id| bench.device.stream(id));
    let mut at = |stream: &SimStream, now: u64, done: u64| {
        let moment = lane.moment(stream, stream.key(), now).unwrap();
        lane.done(done);
        moment
    };
    assert_eq!(at(&a, us(100), us(102)), 0);
    assert_eq!(at(&a, us(103), us(103)), 0, "a nested begin, an adjacent span");
    assert_eq!(at(&a, us(104), us(104)), 0, "and the next: never was the host away for long");
    assert_eq!(at(&a, us(107), us(109)), 1, "a kernel may have been launched");
    assert_eq!(at(&b, us(109), us(110)), 2, "another stream");
    assert_eq!(at(&a, us(110), us(111)), 3, "and back");
    assert_eq!((a.records(), b.records()), (3, 1));
}

#[test]
fn a_lane_that_nobody_times_stops_recording() {
    let bench = Bench::new(0.0);
    let mut lane = lane(&bench);
    let stream = bench.device.stream(0);
    let numbers: Vec<Option<u64>> = (0..5_000).map(|i| lane.moment(&stream, stream.key(), i << 32)).collect();
    assert_eq!(
        (numbers[0], numbers[4_095], numbers[4_096], numbers[4_999]),
        (Some(0), Some(4_095), Some(LOST), Some(LOST))
    );
    assert_eq!(stream.records(), 4_096);
    drop(lane);
    let device = bench.device.clone();
    drop(bench);
    assert_eq!(device.live_events(), 0);
}

#[test]
fn events_go_to_the_pool_of_their_own_device() {
    let bench = Bench::new(0.0);
    let mut lane = lane(&bench);
    let devices = [3, 4].map(|index| SimDevice::new(index, bench.clock.clone()));
    let streams = [devices[0].stream(0), devices[1].stream(0)];
    for round in 0..100_u64 {
        for (place, stream) in streams.iter().enumerate() {
            let moment = lane.moment(stream, stream.key(), (2 * round + place as u64) << 32);
            assert_eq!(moment, Some(2 * round + place as u64));
        }
    }
    assert_eq!(devices.map(|device| device.refused()), [0, 0]);
}
