//! The same subjects under divan. One iteration is 1,000 spans, so that microseconds read as nanoseconds a span; what
//! empties the queues runs between iterations, untimed.
//!
//! divan goes by name, so `off` comes before `on`, where tracing gets its subscriber for good.

use dflash_benches::subject::{SPANS, Subject};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn measure(bencher: Bencher, subject: &dyn Subject) {
    let _entered = subject.enter();
    bencher
        .counter(ItemsCount::new(SPANS))
        .with_inputs(|| {
            subject.settle();
            // Untimed, as in the other programs: whoever has slept finds the caches taken by others.
            subject.round(SPANS / 10);
        })
        .bench_local_values(|()| subject.round(SPANS));
}

#[divan::bench_group(sample_size = 1, sample_count = 300)]
mod floor {
    use super::{Bencher, measure};
    use dflash_benches::floor::{Empty, Reads};

    #[divan::bench]
    fn empty_loop(bencher: Bencher) {
        measure(bencher, &Empty);
    }

    #[divan::bench]
    fn two_raw_clock_reads(bencher: Bencher) {
        measure(bencher, &Reads::new());
    }
}

#[divan::bench_group(sample_size = 1, sample_count = 300)]
mod off {
    use super::{Bencher, measure, ours};
    use dflash_benches::ours::What;
    use dflash_benches::peers::{FastraceOff, PuffinOff, TracingOff};

    #[divan::bench]
    fn dflash(bencher: Bencher) {
        ours(bencher, What::Off);
    }

    #[divan::bench]
    fn fastrace(bencher: Bencher) {
        measure(bencher, &FastraceOff);
    }

    #[divan::bench]
    fn puffin(bencher: Bencher) {
        measure(bencher, &PuffinOff);
    }

    #[divan::bench]
    fn tracing(bencher: Bencher) {
        measure(bencher, &TracingOff);
    }
}

#[divan::bench_group(sample_size = 1, sample_count = 300)]
mod on {
    use super::{Bencher, measure, ours};
    use dflash_benches::ours::What;
    use dflash_benches::peers::{Chrome, Fastrace, Puffin, Registry};

    #[divan::bench(args = [What::Stage, What::Layer, What::Skipped, What::Iteration, What::Counter, What::Flow])]
    fn dflash(bencher: Bencher, what: What) {
        ours(bencher, what);
    }

    #[divan::bench]
    fn fastrace(bencher: Bencher) {
        measure(bencher, &Fastrace::start());
    }

    #[divan::bench]
    fn puffin(bencher: Bencher) {
        measure(bencher, &Puffin::start());
    }

    #[divan::bench]
    fn tracing_chrome(bencher: Bencher) {
        measure(bencher, &Chrome::start().expect("the process has no other subscriber"));
    }

    #[divan::bench]
    fn tracing_registry(bencher: Bencher) {
        measure(bencher, &Registry::new());
    }

    #[cfg(feature = "tracy")]
    #[divan::bench]
    fn tracy(bencher: Bencher) {
        measure(bencher, &dflash_benches::peers::Tracy::start().expect("Tracy's client listens"));
    }
}

/// Each with a recording of its own. Nothing of it may be lost.
fn ours(bencher: Bencher, what: dflash_benches::ours::What) {
    let recording = dflash_benches::ours::Recording::start(None).expect("a run in a temporary folder");
    measure(bencher, &recording.subject(what));
    let totals = recording.finish().expect("the recording ends well");
    assert_eq!((totals.dropped, totals.misplaced), (0, 0), "{totals:?}");
}
