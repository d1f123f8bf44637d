//! Events of a GPU, by both routes.

use crate::support::{GPU, current, gpus, multiply};
use dflash_torch::{Event, Priority, Route, Stream, TorchError};
use tch::Device;

const ROUTES: [Route; 2] = [Route::Runtime, Route::Generic];

#[test]
fn an_event_times_work_and_keeps_its_order() {
    let Some(_gpus) = gpus("an_event_times_work_and_keeps_its_order", 1) else { return };
    drop(multiply(GPU, 2));
    for route in ROUTES {
        let stream = current();
        let mut events: Vec<Event> = (0..3).map(|_| Event::new(GPU, true, route).unwrap()).collect();
        assert!(!events[0].query().unwrap(), "never recorded is not ready");
        assert_eq!(events[0].synchronize(), Err(TorchError::NotRecorded));
        assert_eq!(events[0].elapsed_ns(&events[1]), Err(TorchError::NotRecorded));
        for event in &mut events {
            event.record(&stream).unwrap();
            drop(multiply(GPU, 20));
        }
        assert_eq!(events[0].elapsed_ns(&events[2]), Err(TorchError::NotReady), "{route:?}");
        events[2].synchronize().unwrap();
        assert!(events.iter().all(|event| event.query().unwrap()));
        let between = |a: usize, b: usize| events[a].elapsed_ns(&events[b]).unwrap();
        // 20 products of 4096 x 4096 in f32 are 2.7e12 operations: no device does them in 0.1 ms.
        assert!(between(0, 1) > 100_000 && between(1, 2) > 100_000, "{route:?}: {} {}", between(0, 1), between(1, 2));
        assert!((between(0, 1) + between(1, 2) - between(0, 2)).abs() < 5_000, "{route:?}");
        assert_eq!(between(1, 0), -between(0, 1), "{route:?}");
        assert_eq!(between(1, 1), 0, "{route:?}");
    }
}

#[test]
fn both_routes_agree() {
    let Some(_gpus) = gpus("both_routes_agree", 1) else { return };
    // On the default stream, whose handle is null, and on one that knows its device.
    for stream in [current(), Stream::from_pool(GPU, Priority::Normal).unwrap()] {
        let _guard = stream.enter().unwrap();
        drop(multiply(GPU, 2));
        let mut pairs = ROUTES.map(|route| [(); 2].map(|()| Event::new(GPU, true, route).unwrap()));
        for pair in &mut pairs {
            pair[0].record(&stream).unwrap();
        }
        drop(multiply(GPU, 100));
        for pair in &mut pairs {
            pair[1].record(&stream).unwrap();
        }
        stream.synchronize().unwrap();
        let [runtime, generic] = pairs.each_ref().map(|pair| pair[0].elapsed_ns(&pair[1]).unwrap());
        let apart = (runtime - generic).abs();
        eprintln!("stream {}: runtime {runtime} ns, generic {generic} ns", stream.id());
        assert!(apart * 20 < generic, "{apart} ns of {generic} apart: more than 5 %");
        assert_eq!(pairs[0][0].elapsed_ns(&pairs[1][1]), Err(TorchError::Untimed));
    }
}

#[test]
fn recording_again_forgets_the_moment_before() {
    let Some(_gpus) = gpus("recording_again_forgets_the_moment_before", 1) else { return };
    for route in ROUTES {
        let stream = current();
        let [mut begin, mut end] = [(); 2].map(|()| Event::new(GPU, true, route).unwrap());
        begin.record(&stream).unwrap();
        drop(multiply(GPU, 100));
        end.record(&stream).unwrap();
        end.synchronize().unwrap();
        let long = begin.elapsed_ns(&end).unwrap();
        begin.record(&stream).unwrap();
        end.record(&stream).unwrap();
        end.synchronize().unwrap();
        let short = begin.elapsed_ns(&end).unwrap();
        assert!(short < long / 2, "{route:?}: {short} of {long} ns");
    }
}

#[test]
fn an_untimed_event_has_no_time() {
    let Some(_gpus) = gpus("an_untimed_event_has_no_time", 1) else { return };
    for route in ROUTES {
        let [mut begin, mut end] = [(); 2].map(|()| Event::new(GPU, false, route).unwrap());
        begin.record(&current()).unwrap();
        end.record(&current()).unwrap();
        end.synchronize().unwrap();
        assert_eq!(begin.elapsed_ns(&end), Err(TorchError::Untimed), "{route:?}");
    }
}

#[test]
fn a_dropped_event_may_still_be_under_way_on_another_thread() {
    let Some(_gpus) = gpus("a_dropped_event_may_still_be_under_way_on_another_thread", 1) else { return };
    for route in ROUTES {
        let mut event = Event::new(GPU, true, route).unwrap();
        drop(multiply(GPU, 50));
        event.record(&current()).unwrap();
        std::thread::spawn(move || drop(event)).join().unwrap();
    }
    current().synchronize().unwrap();
}

#[test]
fn two_devices_are_refused_before_cuda_sees_them() {
    let Some(_gpus) = gpus("two_devices_are_refused_before_cuda_sees_them", 2) else { return };
    let other = Device::Cuda(1);
    for route in ROUTES {
        let mut here = Event::new(GPU, true, route).unwrap();
        let mut there = Event::new(other, true, route).unwrap();
        let stream = Stream::current(other).unwrap();
        let error = here.record(&stream).unwrap_err();
        assert!(matches!(error, TorchError::TwoDevices { one: 0, other: 1, .. }), "{error}");
        here.record(&current()).unwrap();
        // The default stream of a device that is not the thread's current one: its handle is null.
        there.record(&stream).unwrap();
        there.synchronize().unwrap();
        here.synchronize().unwrap();
        let error = here.elapsed_ns(&there).unwrap_err();
        assert!(matches!(error, TorchError::TwoDevices { one: 0, other: 1, .. }), "{error}");
        // The thread is still where it was.
        assert_eq!(current().device(), GPU);
        // Waiting across devices is what events are for.
        Stream::from_pool(GPU, Priority::Normal).unwrap().wait(&there).unwrap();
    }
}
