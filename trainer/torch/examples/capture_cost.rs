//! What a kernel capture costs a loop that goes on meanwhile: the loop's iterations before, during each call and after, and
//! how long the calls take. On the first GPU if there is one, else on the CPU.
//! `cargo run --release -p dflash-torch --example capture_cost`

#![expect(clippy::print_stdout, reason = "an example prints its table")]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope, sleep};
use std::time::{Duration, Instant};

use dflash_torch::{CapturedTrace, Priority, Stream, gpu_count, prepare_capture, start_capture, stop_capture};
use tch::{Device, Kind, Tensor};

/// A moment of the loop or of the main thread, in seconds since the example began.
type Moment = (f64, f64);

fn main() -> Result<(), Box<dyn Error>> {
    let device = if gpu_count() > 0 { Device::Cuda(0) } else { Device::Cpu };
    let (begin, stop) = (Instant::now(), AtomicBool::new(false));
    let dir = std::env::temp_dir().join(format!("dflash-capture-cost-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let (iterations, phases) = scope(|scope| {
        let lane = Builder::new().name("drafter:0".to_owned()).spawn_scoped(scope, || train(device, begin, &stop))?;
        let phases = phases(begin, &dir);
        stop.store(true, Ordering::Relaxed);
        let iterations = lane.join().map_err(|_| "the loop panicked")?;
        Ok::<_, Box<dyn Error>>((iterations, phases?))
    })?;
    println!("{device:?}: {} iterations", iterations.len());
    println!("{:<22} {:>9} {:>11} {:>11} {:>11}", "phase", "s", "iterations", "median us", "longest us");
    for (name, (from, to)) in phases {
        let mut times: Vec<f64> =
            iterations.iter().filter(|(b, e)| *e > from && *b < to).map(|(b, e)| (e - b) * 1e6).collect();
        times.sort_by(f64::total_cmp);
        let (median, longest) = (times.get(times.len() / 2), times.last());
        let [median, longest] = [median, longest].map(|t| t.map_or("-".to_owned(), |us| format!("{us:.1}")));
        println!("{name:<22} {:>9.3} {:>11} {median:>11} {longest:>11}", to - from, times.len());
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Two captures in a row: the first sets CUPTI up.
fn phases(begin: Instant, dir: &Path) -> Result<Vec<(String, Moment)>, Box<dyn Error>> {
    let mut phases = Vec::new();
    let now = || begin.elapsed().as_secs_f64();
    let rest = |s: f64| {
        sleep(Duration::from_secs_f64(s));
        Ok::<(), Box<dyn Error>>(())
    };
    // The loop's first iterations load kernels.
    rest(3.0)?;
    for round in 1..=2 {
        let mut phase = |name: &str, work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
            let from = now();
            work()?;
            phases.push((format!("{name} {round}"), (from, now())));
            Ok::<_, Box<dyn Error>>(())
        };
        phase("before", &mut || rest(1.5))?;
        phase("prepare", &mut || Ok(prepare_capture()?))?;
        phase("start", &mut || Ok(start_capture().map(drop)?))?;
        phase("captured", &mut || rest(0.5))?;
        let mut trace = None;
        phase("stop and write", &mut || {
            trace = Some(stop_capture(&dir.join(format!("{round}.json")))?);
            Ok(())
        })?;
        phase("after", &mut || rest(1.5))?;
        told(trace)?;
    }
    Ok(phases)
}

fn told(trace: Option<CapturedTrace>) -> Result<(), Box<dyn Error>> {
    let Some(trace) = trace else { return Ok(()) };
    let bytes = std::fs::metadata(&trace.file)?.len();
    println!("a capture of {} kernels, {bytes} bytes, {:?}", trace.kernels, trace.threads);
    Ok(())
}

/// Small steps of a small network, one after the other: bound by launches, as the profiler hurts most.
fn train(device: Device, begin: Instant, stop: &AtomicBool) -> Vec<Moment> {
    let stream = (device != Device::Cpu).then(|| Stream::from_pool(device, Priority::Normal).ok()).flatten();
    let _current = stream.map(|stream| stream.enter());
    let weights: Vec<Tensor> =
        (0..8).map(|_| (Tensor::randn([256, 256], (Kind::Float, device)) / 16.0).set_requires_grad(true)).collect();
    let x = Tensor::randn([64, 256], (Kind::Float, device));
    let mut moments = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let from = begin.elapsed().as_secs_f64();
        let y = weights.iter().fold(x.shallow_clone(), |y, w| y.matmul(w).relu());
        y.square().mean(Kind::Float).backward();
        for weight in &weights {
            let _ = weight.grad().zero_();
        }
        moments.push((from, begin.elapsed().as_secs_f64()));
    }
    moments
}
