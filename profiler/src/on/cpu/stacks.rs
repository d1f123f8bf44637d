//! What every thread is doing now, those that wait too.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use dflash_sys::sampling::{Asking, End, FRAMES, Label, Sample};

use super::helpers::Hint;
use super::sampler::names;
use super::slots;
use super::symbols::Symbols;
use super::tasks;
use crate::ThreadStack;
use crate::on::clock::Clock;
use crate::on::hub::lock;
use crate::on::site;

/// How long threads may take to answer. One that runs or waits answers in microseconds, unless there are more of them
/// than cores; one that the kernel holds in a driver may not answer at all.
const DEADLINE: Duration = Duration::from_millis(200);
/// Threads that are asked at once: fewer than answers find room.
const AT_ONCE: usize = 256;

/// A thread that is asked, as it was before the question woke it.
struct Asked {
    tid: u32,
    name: String,
    state: String,
    hint: u64,
    blocks: bool,
}

/// Asks every thread of this process for its stack.
pub(crate) fn stacks(clock: &Clock, symbols: &Mutex<Symbols>) -> Result<Vec<ThreadStack>, String> {
    let mut asking = Asking::start(slots::label).map_err(|error| format!("threads cannot be asked: {error}"))?;
    let program = tasks::program();
    let mut asked: Vec<Asked> =
        tasks::tids().into_iter().filter_map(|tid| look(tid, &program, asking.signal())).collect();
    asked.sort_by_key(|thread| thread.tid);
    let mut answers = HashMap::new();
    for some in asked.chunks(AT_ONCE) {
        ask(&mut asking, some, &mut answers);
    }
    // Before the names are looked up, which may take a while.
    let now = (clock.ticks(), dflash_sys::monotonic_ns());
    let late: Vec<Option<String>> = asked.iter().map(|thread| excuse(thread, &answers)).collect();
    drop(asking);
    let mut symbols = lock(symbols);
    let stack = |(thread, late)| stack(thread, late, &answers, clock, now, &mut symbols);
    Ok(asked.into_iter().zip(late).map(stack).collect())
}

fn look(tid: u32, program: &str, signal: i32) -> Option<Asked> {
    let name = tasks::name(tid)?;
    let hint = Hint::of(&name, program).pack();
    Some(Asked { tid, name, state: tasks::state(tid), hint, blocks: tasks::blocks(tid, signal) })
}

fn ask(asking: &mut Asking, threads: &[Asked], answers: &mut HashMap<u32, Sample>) {
    let begin = Instant::now();
    let asked = threads.iter().filter(|t| !t.blocks && asking.ask(t.tid, t.hint).is_ok()).count();
    let before = answers.len();
    let mut take = |asking: &mut Asking| {
        while asking.next(|sample| answers.extend([(sample.tid, sample.clone())])) {}
        answers.len() - before
    };
    while take(asking) < asked && begin.elapsed() < DEADLINE {
        thread::sleep(Duration::from_micros(200));
    }
    take(asking);
}

/// Why there is no answer.
fn excuse(thread: &Asked, answers: &HashMap<u32, Sample>) -> Option<String> {
    if answers.contains_key(&thread.tid) {
        return None;
    }
    let place = tasks::kernel_place(thread.tid);
    let why = if thread.blocks { "blocks the signal".to_owned() } else { format!("no answer in {DEADLINE:?}") };
    Some(format!("{why}; {place}"))
}

fn stack(
    thread: Asked,
    late: Option<String>,
    answers: &HashMap<u32, Sample>,
    clock: &Clock,
    now: (u64, i64),
    symbols: &mut Symbols,
) -> ThreadStack {
    let answer = answers.get(&thread.tid);
    let label = answer.map_or_else(|| slots::label_of_thread(thread.tid, thread.hint), |sample| sample.label);
    let at_ns = answer.map_or(now.1, |sample| sample.time_ns);
    // Spans have their begins in ticks, samples are timed in nanoseconds.
    let since = Duration::from_nanos(now.1.saturating_sub(at_ns).unsigned_abs());
    let age = |begin: u64| clock.duration(now.0.saturating_sub(begin)).saturating_sub(since);
    let frames = answer.map(|sample| names(sample, symbols)).unwrap_or_default();
    let cut =
        || answer.filter(|sample| sample.end == End::Cut).map(|_| format!("only the innermost {FRAMES} functions"));
    let Label { lane, iteration, .. } = label;
    ThreadStack {
        name: thread.name,
        tid: thread.tid,
        state: thread.state,
        lane: slots::lane(lane).map(|(name, _)| name),
        iteration: iteration.checked_sub(1),
        spans: label.open().map(|(id, begin)| (site::name(id).to_owned(), age(begin))).collect(),
        frames: frames.iter().map(|frame| frame.to_string()).collect(),
        note: late.or_else(cut),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Asked, excuse};

    #[test]
    fn a_thread_that_cannot_answer_is_excused() {
        let asked =
            |blocks| Asked { tid: std::process::id(), name: "x".into(), state: "sleeping".into(), hint: 0, blocks };
        let excuses = [true, false].map(|blocks| excuse(&asked(blocks), &HashMap::new()).unwrap());
        assert!(excuses[0].starts_with("blocks the signal; "), "{excuses:?}");
        assert!(excuses[1].starts_with("no answer in 200ms; "), "{excuses:?}");
    }
}
