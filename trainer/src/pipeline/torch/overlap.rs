//! Gradients that are added up while the backward pass still makes others.
//!
//! A hook on each weight says when its gradient is complete. Weights lie in buckets; all drafters send the same buckets in the
//! same order, whatever order their gradients come in, to a thread that adds them up on streams of its own.

use crate::instrument::TorchStream;
use crate::model::kernels::sound;
use crate::pipeline::collective::{BUCKET, Collective, Ended, from_the_end};
use crate::pipeline::lane::cause_text_at;
use dflash_profiler::span;
use dflash_torch::{GradientWatch, Moment, Priority, Stream};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tch::{Device, Tensor};

/// A drafter's.
pub(super) struct Overlap {
    board: Arc<Board>,
    _watch: GradientWatch,
    /// Where gradients are added up, on each device that some come from.
    streams: Vec<Stream>,
    threads: i32,
}

struct Board(Mutex<State>);

struct State {
    weights: Vec<Tensor>,
    /// Places among the weights, in the order in which they are sent; and each weight's bucket.
    buckets: Vec<Range<usize>>,
    bucket_of: Vec<usize>,
    pass: Option<Pass>,
}

/// A backward pass that is under way.
struct Pass {
    send: Sender<Said>,
    weighed: bool,
    /// Gradients that each bucket lacks.
    missing: Vec<usize>,
    /// The bucket that is sent next.
    next: usize,
}

enum Said {
    /// The weight of the loss: its number of slots, or what the device alone knows.
    Weight(f64, Option<Tensor>, Moment),
    Bucket(Part),
}

/// Gets the weight of a loss before its backward pass begins: its number of slots, or what the device alone knows.
type Weigh<'a> = &'a dyn Fn(f64, Option<&Tensor>);

/// A bucket's gradients, by the place of the first among the weights.
pub(super) struct Part {
    first: usize,
    gradients: Vec<Tensor>,
    made: Moment,
}

impl Overlap {
    /// For a drafter with these weights, on the thread and the streams that it learns on; `devices`: of all drafters.
    pub(super) fn new(weights: Vec<Tensor>, devices: &[Device]) -> Result<Self, String> {
        Self::in_buckets(weights, devices, BUCKET)
    }

    fn in_buckets(weights: Vec<Tensor>, devices: &[Device], bytes: usize) -> Result<Self, String> {
        let said = |error: dflash_torch::TorchError| error.to_string();
        let cuda: HashSet<Device> = devices.iter().copied().filter(|device| device.is_cuda()).collect();
        // What others wait for goes first.
        let streams = cuda.into_iter().map(|device| Stream::from_pool(device, Priority::High));
        let streams = streams.collect::<Result<_, _>>().map_err(said)?;
        let watched: Vec<Tensor> = weights.iter().map(Tensor::shallow_clone).collect();
        let board = Arc::new(Board::new(weights, bytes));
        let told = Arc::clone(&board);
        let watch = GradientWatch::new(&watched, move |number| told.complete(number)).map_err(said)?;
        Ok(Self { board, _watch: watch, streams, threads: tch::get_num_threads() })
    }

    /// Runs `backward` and adds up what it makes: its own result, and the gradients of all drafters in the weights' order, for
    /// the calling thread's streams, of which spans are timed on `stream`. `backward` tells the weight of its loss; one
    /// that has none takes part with no weight.
    pub(super) fn run<T>(
        &self,
        group: &mut dyn Collective,
        stream: Option<TorchStream>,
        backward: impl FnOnce(Weigh<'_>) -> Result<T, String>,
    ) -> Result<(T, Result<Vec<Tensor>, Ended>), String> {
        let (send, said) = channel();
        let (streams, threads) = (&self.streams[..], self.threads);
        std::thread::scope(|scope| {
            let open = Open::new(&self.board, send);
            let adding = scope.spawn(move || add_up(group, said, streams, threads));
            let made = backward(&|slots, divisor| open.weigh(slots, divisor))?;
            let _span = span!("drafter.reduce", &stream);
            open.finish();
            let parts = {
                // Between processes the sums are there when it ends, and so the device has made all gradients.
                let _sync = span!("sync.reduce");
                adding.join()
            };
            let parts = parts.map_err(|panic| cause_text_at("drafter.reduce", panic.as_ref()))?;
            Ok((made, parts.map(in_order)))
        })
    }
}

/// The adding thread: gradients come in the order in which all drafters send them.
fn add_up(
    group: &mut dyn Collective,
    said: Receiver<Said>,
    streams: &[Stream],
    threads: i32,
) -> Result<Vec<Part>, Ended> {
    let _guard = tch::no_grad_guard();
    tch::set_num_threads(threads);
    let _on: Vec<_> = streams.iter().map(|stream| sound(stream.enter())).collect();
    let (mut share, mut parts) = (0.0, Vec::new());
    for said in said {
        match said {
            Said::Weight(slots, divisor, made) => {
                let divisor: Vec<Tensor> = divisor.into_iter().collect();
                sound(made.reach(&divisor, Device::Cpu));
                share = group.share(divisor.first().map_or(slots, |divisor| divisor.double_value(&[])))?;
            }
            Said::Bucket(Part { first, mut gradients, made }) => {
                sound(made.reach(&gradients, Device::Cpu));
                group.weighted(&mut gradients, share)?;
                let made = sound(Moment::of(&gradients));
                parts.push(Part { first, gradients, made });
            }
        }
    }
    Ok(parts)
}

/// Gradients in the weights' order, for the calling thread's streams.
fn in_order(mut parts: Vec<Part>) -> Vec<Tensor> {
    parts.sort_by_key(|part| part.first);
    parts.iter().for_each(|part| sound(part.made.reach(&part.gradients, Device::Cpu)));
    parts.into_iter().flat_map(|part| part.gradients).collect()
}

/// A pass that is under way; without it the adding thread ends.
struct Open<'a>(&'a Board);

impl<'a> Open<'a> {
    fn new(board: &'a Board, send: Sender<Said>) -> Self {
        let mut state = board.lock();
        let missing = state.buckets.iter().map(Range::len).collect();
        state.pass = Some(Pass { send, weighed: false, missing, next: 0 });
        drop(state);
        Self(board)
    }

    fn weigh(&self, slots: f64, divisor: Option<&Tensor>) {
        let divisor = divisor.map(Tensor::shallow_clone);
        let made = sound(Moment::on(divisor.iter().map(Tensor::device)));
        if let Some(pass) = &mut self.0.lock().pass {
            pass.weighed = true;
            pass.tell(Said::Weight(slots, divisor, made));
        }
    }

    /// The backward pass is over: what nobody has told of goes, too.
    fn finish(self) {
        let weighed = self.0.lock().pass.as_ref().is_some_and(|pass| pass.weighed);
        if !weighed {
            self.weigh(0.0, None);
        }
        self.0.lock().send(true);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.lock().pass = None;
    }
}

impl Pass {
    fn tell(&self, said: Said) {
        // Who does not listen any more has its reason, and says it.
        let _ = self.send.send(said);
    }
}

impl Board {
    fn new(weights: Vec<Tensor>, bytes: usize) -> Self {
        let buckets = from_the_end(&weights, bytes);
        let mut bucket_of = vec![0; weights.len()];
        for (number, bucket) in buckets.iter().enumerate() {
            bucket_of[bucket.clone()].fill(number);
        }
        Self(Mutex::new(State { weights, buckets, bucket_of, pass: None }))
    }

    /// A weight's gradient is complete.
    fn complete(&self, number: usize) {
        let mut state = self.lock();
        let bucket = state.bucket_of[number];
        if let Some(pass) = &mut state.pass {
            pass.missing[bucket] = pass.missing[bucket].saturating_sub(1);
            state.send(false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Between two statements it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Sends the buckets that are next and complete; or all that have not gone.
    fn send(&mut self, all: bool) {
        let Some(pass) = &mut self.pass else { return };
        while pass.next < self.buckets.len() && (all || (pass.weighed && pass.missing[pass.next] == 0)) {
            let bucket = self.buckets[pass.next].clone();
            let gradients: Vec<Tensor> = self.weights[bucket.clone()].iter().map(gradient).collect();
            let made = sound(Moment::of(&gradients));
            pass.tell(Said::Bucket(Part { first: bucket.start, gradients, made }));
            pass.next += 1;
        }
    }
}

/// A weight's gradient; zeros where a batch made none.
pub(super) fn gradient(weight: &Tensor) -> Tensor {
    Some(weight.grad()).filter(Tensor::defined).unwrap_or_else(|| weight.detach().zeros_like())
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
