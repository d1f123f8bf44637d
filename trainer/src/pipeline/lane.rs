//! A lane: a named thread whose panic becomes an error that names it.

use super::observe::{LaneReport, Observer, StageMean};
use dflash_profiler::Lane;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Runs `work` on a thread of its own that is bound to `lane`; `on_failure` runs there if it fails or panics.
pub(super) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    lane: Lane,
    work: impl FnOnce() -> Result<T, String> + Send + 'scope,
    on_failure: impl FnOnce(&str) + Send + 'scope,
) -> std::io::Result<ScopedJoinHandle<'scope, Result<T, String>>> {
    note_stages();
    Builder::new().name(name.to_owned()).spawn_scoped(scope, move || {
        let _on_lane = lane.enter();
        // libtorch's errors arrive as panics of tch: an out-of-memory must not take the other lanes with it silently.
        let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| Err(cause_text(cause.as_ref())));
        if let Err(cause) = &result {
            on_failure(cause);
        }
        result
    })
}

/// What this thread's panic said; of libtorch's messages only what comes before the C++ backtrace.
pub(crate) fn cause_text(cause: &(dyn Any + Send)) -> String {
    advised(message(cause), STAGE.with(Cell::take))
}

/// What the panic of a thread said that works at `stage` for a lane and is on none itself.
pub(super) fn cause_text_at(stage: &'static str, cause: &(dyn Any + Send)) -> String {
    advised(message(cause), Some(stage))
}

fn message(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("it panicked without a message");
    text.split("\\nException raised from").next().unwrap_or(text).trim()
}

thread_local! {
    /// What the thread was at when it panicked.
    static STAGE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// From now on a panic notes which span was open: when it is caught, all are closed.
fn note_stages() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = STAGE.try_with(|stage| stage.set(dflash_profiler::open_span()));
            before(panic);
        }));
    });
}

/// Where memory ran out: at what, and what to lower.
fn advised(text: &str, stage: Option<&str>) -> String {
    let out = ["out of memory", "can't allocate memory", "not enough memory"].iter().any(|words| text.contains(words));
    if !out {
        return text.to_owned();
    }
    let stage = stage.map(|stage| format!(", in {stage}")).unwrap_or_default();
    format!("{text}{stage}; lower [train] batch or anchors, [data] max_length, or [pipeline] hs_queue")
}

/// Tells the observer the lane's mean times since the last call.
pub(super) fn report(observer: &dyn Observer, lane: &str, iteration: u64) {
    let stats = dflash_profiler::take_stats();
    let iterations = stats.iter().find(|s| s.name == "total").map_or(0, |s| s.count);
    if iterations == 0 {
        return;
    }
    let mean = |s: &dflash_profiler::Stat| StageMean {
        stage: s.name.to_owned(),
        ms: s.total.as_secs_f64() * 1e3 / iterations as f64,
    };
    let stages = stats.iter().map(mean).collect();
    observer.lane(&LaneReport { lane: lane.to_owned(), iteration, iterations, stages });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "spans")]
    #[test]
    fn out_of_memory_names_the_stage_and_what_to_lower() {
        let dir = tempfile::tempdir().unwrap();
        let run = dflash_profiler::timeline::RunDir::create(dir.path(), "full", Default::default()).unwrap();
        let profiler = dflash_profiler::Profiler::start(dflash_profiler::Options::new(run)).unwrap();
        let told = std::sync::Mutex::new(String::new());
        let work = || -> Result<(), String> {
            let _iteration = dflash_profiler::begin_iteration(dflash_profiler::Kind::Train);
            let _span = dflash_profiler::span!("drafter.forward");
            // More than any machine has.
            let _ = tch::Tensor::zeros([1 << 56], (tch::Kind::Float, tch::Device::Cpu));
            Ok(())
        };
        std::thread::scope(|scope| {
            let failed = |cause: &str| told.lock().unwrap().push_str(cause);
            let lane = spawn(scope, "drafter:0", profiler.lane("drafter:0", "cpu"), work, failed).unwrap();
            assert!(lane.join().unwrap().is_err());
        });
        let told = told.into_inner().unwrap();
        assert!(told.contains(", in drafter.forward; lower [train] batch or anchors"), "{told}");
    }

    #[test]
    fn a_panic_names_its_cause_without_the_backtrace() {
        let cause: Box<dyn Any + Send> = Box::new("Torch(\"out of memory\\nException raised from malloc\")".to_owned());
        let text = cause_text(cause.as_ref());
        assert!(text.starts_with("Torch(\"out of memory; lower [train] batch or anchors"), "{text}");
        let cause: Box<dyn Any + Send> = Box::new("plain");
        assert_eq!(cause_text(cause.as_ref()), "plain");
    }
}
