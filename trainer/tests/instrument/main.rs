//! The adapters between libtorch and the profiler. What needs a GPU says that it was skipped where there is none.

use std::path::Path;
use std::thread;

use dflash_profiler::{AllocatorStats, DeviceEvent, DeviceStream, KernelCapture};
use dflash_torch::gpu_count;
use dflash_trainer::instrument::{self, KinetoCapture, TorchStream};
use gpus::{GPU, gpus};
use tch::{Device, Kind, Tensor};

#[path = "../../torch/tests/shim/gpus.rs"]
mod gpus;

fn multiply(device: Device, times: usize) {
    let a = Tensor::ones([4096, 4096], (Kind::Float, device));
    let product = (0..times).fold(a.shallow_clone(), |product, _| product.matmul(&a) / 4096.0);
    drop(product);
}

/// Work through the trait alone, until the event is there.
fn wait(event: &dyn DeviceEvent) {
    while !event.ready().expect("a device that works") {
        thread::yield_now();
    }
}

#[test]
fn the_cpu_has_no_stream_and_no_allocator() {
    assert!(instrument::stream(Device::Cpu).is_none());
    assert!(instrument::allocator(Device::Cpu).is_none());
    let error = TorchStream::current(Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("cpu has no streams"), "{error}");
}

#[test]
fn a_capture_on_the_cpu_names_what_it_lacks_and_whom() {
    let dir = tempfile::tempdir().unwrap();
    let capture = KinetoCapture::new();
    let unseen = capture.start().unwrap();
    assert_eq!(unseen.is_empty(), gpu_count() > 0, "{unseen:?}");
    assert!(capture.start().unwrap_err().to_string().contains("runs already"));
    let work = || {
        let a = Tensor::ones([64, 64], (Kind::Float, Device::Cpu));
        drop(a.mm(&a));
    };
    thread::scope(|scope| {
        let lane = thread::Builder::new().name("drafter:0".to_owned());
        let (stopped, wait) = std::sync::mpsc::channel::<()>();
        let (worked, done) = std::sync::mpsc::channel::<()>();
        let body = move || {
            work();
            worked.send(()).unwrap();
            // The thread's name is asked for at the end of the capture.
            let _ = wait.recv();
        };
        lane.spawn_scoped(scope, body).unwrap();
        done.recv().unwrap();
        capture.stop(&dir.path().join("kernels.json")).unwrap();
        drop(stopped);
    });
    assert!(capture.stop(Path::new("none.json")).unwrap_err().to_string().contains("no kernel capture"));
    assert_eq!(capture.lanes_without_operators(&["drafter:0", "loader"].map(str::to_owned)), ["loader"]);
    let text = std::fs::read_to_string(dir.path().join("kernels.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["traceEvents"].as_array().unwrap().iter().any(|e| e["name"] == "aten::mm"));
}

#[test]
fn the_traits_time_work_and_a_side_stream_does_not_wait_for_it() {
    let Some(_gpus) = gpus("the_traits_time_work_and_a_side_stream_does_not_wait_for_it", 1) else { return };
    multiply(GPU, 2);
    let stream = instrument::stream(GPU).unwrap();
    assert_eq!((stream.key().device, stream.key().stream), (0, stream.torch().id()));
    let side = stream.side().unwrap();
    assert_ne!(side.key(), stream.key());
    let [mut begin, mut end, mut beside] = [(); 3].map(|()| stream.new_event().unwrap());
    assert!(!begin.ready().unwrap());
    stream.record(begin.as_mut()).unwrap();
    multiply(GPU, 200);
    stream.record(end.as_mut()).unwrap();
    side.record(beside.as_mut()).unwrap();
    wait(beside.as_ref());
    wait(end.as_ref());
    let elapsed = begin.elapsed_ns(end.as_ref()).unwrap();
    let anchor = begin.elapsed_ns(beside.as_ref()).unwrap();
    eprintln!("200 products {elapsed} ns; the side stream's event {anchor} ns after their begin");
    assert!(elapsed > 1_000_000);
    assert!(anchor < elapsed, "the side stream waited");
}

#[test]
fn an_event_of_another_device_is_an_error_of_ours() {
    let Some(_gpus) = gpus("an_event_of_another_device_is_an_error_of_ours", 2) else { return };
    let [here, there] = [GPU, Device::Cuda(1)].map(|device| instrument::stream(device).unwrap());
    let mut event = there.new_event().unwrap();
    let error = here.record(event.as_mut()).unwrap_err().to_string();
    assert!(error.contains("cuda:1") && error.contains("cuda:0"), "{error}");
}

#[test]
fn the_allocators_counters_come_through() {
    let Some(_gpus) = gpus("the_allocators_counters_come_through", 1) else { return };
    let allocator = instrument::allocator(GPU).unwrap();
    assert_eq!(allocator.device(), "cuda:0");
    let before = allocator.counters().unwrap();
    let _tensor = Tensor::zeros([1 << 30], (Kind::Uint8, GPU));
    let after = allocator.counters().unwrap();
    assert!(after.allocations > before.allocations);
    assert!(after.active_bytes > 0 && after.reserved_bytes >= after.active_bytes, "{after:?}");
}
