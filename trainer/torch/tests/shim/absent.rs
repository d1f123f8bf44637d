//! Without a GPU, and for devices that are none: errors that name the way out.

use dflash_torch::{CachingAllocator, Event, Priority, Route, Stream, TorchError, free_memory, gpu_count};
use tch::Device;

#[test]
fn the_cpu_has_no_streams_and_no_events() {
    let expected = TorchError::NotAGpu { device: "cpu".to_owned() };
    assert_eq!(Stream::current(Device::Cpu).unwrap_err(), expected);
    assert_eq!(Event::timed(Device::Cpu).unwrap_err(), expected);
    assert_eq!(CachingAllocator::of(Device::Cpu).unwrap_err(), expected);
    assert_eq!(free_memory(Device::Cpu).unwrap_err(), expected);
    assert_eq!(expected.to_string(), "cpu has no streams and no events: they are a GPU's, cuda:N");
}

#[test]
fn a_gpu_that_is_not_there_is_named_with_the_reason() {
    let gpus = gpu_count();
    for number in [gpus, 127, 128, 40_000, usize::MAX] {
        let device = Device::Cuda(number);
        let errors = [
            Stream::current(device).unwrap_err(),
            Stream::from_pool(device, Priority::High).unwrap_err(),
            Event::timed(device).unwrap_err(),
            Event::new(device, true, Route::Generic).unwrap_err(),
            Event::new(device, true, Route::Runtime).unwrap_err(),
            CachingAllocator::of(device).unwrap_err(),
            free_memory(device).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.starts_with(&format!("cuda:{number} is not there: ")), "{text}");
            let ways = ["scripts/libtorch --cuda", "is the driver running?", "numbered from 0", "could not be opened"];
            assert!(ways.iter().any(|way| text.contains(way)), "{text}");
        }
    }
}

#[test]
fn owners_may_go_to_other_threads() {
    fn sent<T: Send + Sync>() {}
    sent::<Stream>();
    sent::<Event>();
    sent::<CachingAllocator>();
}
