//! What a call of the shim costs on this machine's first GPU, by both routes: medians of many short rounds, in
//! microseconds of the calling thread. `cargo run --release -p dflash-torch --example shim_cost`

#![expect(clippy::print_stdout, reason = "an example prints its table")]

use std::time::{Duration, Instant};

use dflash_torch::{CachingAllocator, Event, Route, Stream, TorchError, gpu_count};
use tch::{Device, Kind, Tensor};

const GPU: Device = Device::Cuda(0);
/// Calls a round, and rounds; routes alternate from round to round, so that a slow moment hits both.
const CALLS: usize = 100;
const ROUNDS: usize = 101;

fn main() -> Result<(), TorchError> {
    if gpu_count() == 0 {
        println!("no GPU: nothing to measure");
        return Ok(());
    }
    let warm = Tensor::ones([1024, 1024], (Kind::Float, GPU));
    drop(warm.matmul(&warm));
    let default = Stream::current(GPU)?;
    let pooled = Stream::from_pool(GPU, dflash_torch::Priority::Normal)?;
    println!("{:<44} {:>10} {:>10}", "us a call, median", "runtime", "c10");
    for (name, stream) in [("default stream", default), ("pool stream", pooled)] {
        events(name, stream)?;
    }
    let allocator = CachingAllocator::of(GPU)?;
    let counters = median((0..ROUNDS).map(|_| round(|_| allocator.counters().map(drop))).collect::<Result<_, _>>()?);
    println!("{:<44} {counters:>10.3}", "allocator counters");
    launches(default)?;
    Ok(())
}

/// One line a call: both routes, side by side.
fn events(name: &str, stream: Stream) -> Result<(), TorchError> {
    let mut lines: Vec<(&str, [Vec<f64>; 2])> =
        ["make and drop", "record", "query, done", "elapsed"].map(|call| (call, [const { Vec::new() }; 2])).into();
    for _ in 0..ROUNDS {
        for (which, route) in [Route::Runtime, Route::Generic].into_iter().enumerate() {
            let mut events = (0..CALLS + 1).map(|_| Event::new(GPU, true, route)).collect::<Result<Vec<_>, _>>()?;
            let made = round(|_| Event::new(GPU, true, route).map(drop))?;
            let recorded = round(|i| events[i].record(&stream))?;
            events[CALLS].record(&stream)?;
            stream.synchronize()?;
            let asked = round(|i| events[i].query().map(drop))?;
            let elapsed = round(|i| events[i].elapsed_ns(&events[i + 1]).map(drop))?;
            for (line, value) in lines.iter_mut().zip([made, recorded, asked, elapsed]) {
                line.1[which].push(value);
            }
        }
    }
    for (call, [runtime, generic]) in lines {
        println!("{:<44} {:>10.3} {:>10.3}", format!("{call} ({name})"), median(runtime), median(generic));
    }
    Ok(())
}

/// A tiny operator, alone and between two events: what a span costs a launch-bound loop.
fn launches(stream: Stream) -> Result<(), TorchError> {
    let mut tensor = Tensor::ones([16], (Kind::Float, GPU));
    let mut pairs = |route: Option<Route>| -> Result<f64, TorchError> {
        let mut events = Vec::new();
        for _ in 0..2 * CALLS {
            events.push(Event::new(GPU, true, route.unwrap_or(Route::Runtime))?);
        }
        let us = round(|i| {
            if route.is_some() {
                events[2 * i].record(&stream)?;
            }
            let _ = tensor.g_add_scalar_(1.0);
            if route.is_some() {
                events[2 * i + 1].record(&stream)?;
            }
            Ok(())
        })?;
        stream.synchronize()?;
        Ok(us)
    };
    let mut columns = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (column, route) in columns.iter_mut().zip([None, Some(Route::Runtime), Some(Route::Generic)]) {
            column.push(pairs(route)?);
        }
    }
    let [alone, runtime, generic] = columns.map(median);
    println!("{:<44} {alone:>10.3}", "tiny operator, alone");
    println!("{:<44} {runtime:>10.3} {generic:>10.3}", "tiny operator between two events");
    Ok(())
}

/// Microseconds a call of one round.
fn round(mut call: impl FnMut(usize) -> Result<(), TorchError>) -> Result<f64, TorchError> {
    let begin = Instant::now();
    for i in 0..CALLS {
        call(i)?;
    }
    let took: Duration = begin.elapsed();
    Ok(took.as_secs_f64() * 1e6 / CALLS as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
