//! What NVML's calls cost on a machine that has it: `cargo test -p dflash-profiler nvml_cost -- --ignored --nocapture`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;

use crate::NvmlOptions;
use crate::on::samplers::nvml::asker::Clocks;
use crate::on::samplers::nvml::gpus::{Fault, Gpus, Query};
use crate::on::samplers::nvml::library::Library;
use crate::on::samplers::nvml::visible::Visible;
use crate::on::samplers::nvml::watch::Watch;
use crate::on::samplers::tests::Readings;

/// Calls of each kind, and the time between them: NVML answers from memory for a moment.
const CALLS: usize = 24;
const APART: Duration = Duration::from_millis(130);

#[test]
#[ignore = "needs a GPU"]
fn nvml_cost() {
    let begin = Instant::now();
    let nvml = Nvml::init().unwrap();
    println!("init: {} us; environment: {:?}", begin.elapsed().as_micros(), Visible::from_environment());
    let mut library = Library::new(&nvml);
    let begin = Instant::now();
    let listing = library.list().unwrap();
    println!("list: {} us; driver {:?}; {listing:#?}", begin.elapsed().as_micros(), library.driver());
    println!("{:<28}{:>12}{:>12}{:>16}{:>12}   answer", "query", "median us", "max us", "back to back", "CPU us");
    for query in Query::FAST.into_iter().chain(Query::SLOW).chain(Query::PCIE) {
        for gpu in 0..listing.gpus.len() {
            costs(&mut library, gpu, query);
        }
    }
    sampler(library);
}

/// One line: a query's calls, apart and at once.
fn costs(library: &mut Library<'_>, gpu: usize, query: Query) {
    let mut call = || {
        let (cpu, begin) = (dflash_sys::thread_cpu_ns(), Instant::now());
        let answer = library.ask(gpu, query);
        (begin.elapsed(), dflash_sys::thread_cpu_ns() - cpu, answer)
    };
    let (mut apart, mut cpu, mut last) = (Vec::new(), 0, Err(Fault::Unsupported));
    for _ in 0..CALLS {
        sleep(APART);
        let (took, cpu_ns, answer) = call();
        apart.push(took);
        cpu += cpu_ns;
        last = answer;
    }
    let mut at_once: Vec<_> = (0..CALLS).map(|_| call().0).collect();
    apart.sort_unstable();
    at_once.sort_unstable();
    let us = |took: Duration| took.as_nanos() as f64 / 1e3;
    println!(
        "{:<28}{:>12.1}{:>12.1}{:>16.2}{:>12.1}   {last:?}",
        format!("{gpu}: {}", query.words()),
        us(apart[CALLS / 2]),
        us(apart[CALLS - 1]),
        us(at_once[CALLS / 2]),
        cpu as f64 / 1e3 / CALLS as f64,
    );
}

/// The sampler as it runs in a recording, for 30 seconds.
fn sampler(library: Library<'_>) {
    let (mut sink, options) = (Readings::default(), NvmlOptions::default());
    let every = Duration::from_secs(1);
    let environment = Visible::from_environment();
    let watch = Watch::start(library, Clocks::real(), (every, &options), &environment, &mut sink);
    let mut watch = watch.unwrap_or_else(|| panic!("nothing to sample: {:?}", sink.marks));
    let begin = (Instant::now(), dflash_sys::thread_cpu_ns());
    while begin.0.elapsed() < Duration::from_secs(30) {
        sleep(watch.rest());
        watch.turn(&mut sink);
    }
    let (wall, cpu) = (begin.0.elapsed(), dflash_sys::thread_cpu_ns() - begin.1);
    println!("sampler: {:.4} % of one core", cpu as f64 / wall.as_nanos() as f64 * 100.0);
    sink.marks.iter().for_each(|mark| println!("{mark:?}"));
    let mut names: Vec<_> = sink.samples.iter().map(|(name, unit, _)| (name.clone(), *unit)).collect();
    names.sort();
    names.dedup();
    for (name, unit) in names {
        println!("{name}: {:?} {unit}", sink.last(&name));
    }
}
