//! The target answers prompts: greedily or by chance, batched, with a cache.
//!
//! Prompts of a batch are padded at their end, so that their first pass is plain causal attention; the rows of the
//! padding stay in the cache, hidden by the mask. Answers that have ended leave the batch once they are a quarter of it.

use super::sampling::{Sampling, draw};
use super::{KvCache, Target};
use crate::model::attention::likeliest;
use crate::model::pad_rows;
use rand::rngs::StdRng;
use tch::{Device, IndexOp, Kind, Tensor};

/// How to answer.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Longest answer, tokens.
    pub max_new_tokens: usize,
    /// Prompts answered at the same time.
    pub batch: usize,
    /// Tokens that end an answer.
    pub stop_ids: Vec<i64>,
    /// How tokens are drawn; `None`: always the likeliest.
    pub sampling: Option<Sampling>,
}

/// A prompt's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its tokens, the one that ended it included.
    pub ids: Vec<i64>,
    /// It ended by itself.
    pub ended: bool,
}

/// Answers every prompt (non-empty lists of ids), in the order given. `progress` is told how many tokens were made, and
/// how many prompts were finished, since it was last called.
#[must_use]
pub fn generate(
    target: &Target,
    prompts: &[Vec<i64>],
    options: &GenerateOptions,
    mut progress: impl FnMut(usize, usize),
) -> Vec<Answer> {
    let _guard = tch::no_grad_guard();
    let mut order: Vec<usize> = (0..prompts.len()).collect();
    // Prompts of like length pad each other least.
    order.sort_by_key(|&i| std::cmp::Reverse(prompts[i].len()));
    let mut answers = vec![Answer::default(); prompts.len()];
    for chunk in order.chunks(options.batch.max(1)) {
        Batch::start(target, prompts, chunk, options).run(&mut answers, &mut progress);
    }
    answers
}

/// Prompts that are being answered together.
struct Batch<'a> {
    target: &'a Target,
    options: &'a GenerateOptions,
    /// For each row, whose answer it makes.
    rows: Vec<usize>,
    done: Vec<bool>,
    /// Each row's own chance, so that an answer does not depend on its company; empty without sampling
    chances: Vec<StdRng>,
    /// `[b]` position of the next token of each row
    positions: Tensor,
    /// [b, 1, 1, rows]: 0 where a cached row may be seen; the newest row is always opened by [`Batch::step`]
    mask: Tensor,
    cache: KvCache,
    /// `[b]` the tokens made last
    next: Tensor,
}

impl<'a> Batch<'a> {
    fn start(target: &'a Target, prompts: &[Vec<i64>], rows: &[usize], options: &'a GenerateOptions) -> Self {
        let longest = rows.iter().map(|&r| prompts[r].len()).max().unwrap_or(0);
        let lengths: Vec<i64> = rows.iter().map(|&r| prompts[r].len() as i64).collect();
        let device = target.device();
        let texts: Vec<&[i64]> = rows.iter().map(|&r| prompts[r].as_slice()).collect();
        let ids = pad_rows(&texts).to_device(device);
        let lengths = Tensor::from_slice(&lengths).to_device(device);
        let mut cache = target.cache(rows.len() as i64, longest as i64);
        let mut chances: Vec<StdRng> = match &options.sampling {
            Some(sampling) => texts.iter().map(|text| sampling.chance(text)).collect(),
            None => Vec::new(),
        };
        let next = choose(&prefill(target, &ids, &lengths, &mut cache), options, &mut chances);
        let mask = padding_mask(&lengths, (longest + options.max_new_tokens) as i64 + SPARE, target.kind());
        Self {
            target,
            options,
            rows: rows.to_vec(),
            done: vec![false; rows.len()],
            chances,
            positions: lengths,
            mask,
            cache,
            next,
        }
    }

    fn run(mut self, answers: &mut [Answer], progress: &mut impl FnMut(usize, usize)) {
        loop {
            let (made, ended) = self.record(answers);
            progress(made, ended);
            if self.done.iter().all(|&d| d) {
                return;
            }
            self.drop_finished();
            self.step();
        }
    }

    /// Appends the newest tokens to their answers; returns how many, and how many answers ended with them.
    fn record(&mut self, answers: &mut [Answer]) -> (usize, usize) {
        let tokens = Vec::<i64>::try_from(self.next.to_device(Device::Cpu)).unwrap_or_default();
        let (mut made, mut ended) = (0, 0);
        for ((&row, done), token) in self.rows.iter().zip(&mut self.done).zip(tokens) {
            if *done {
                continue;
            }
            let answer = &mut answers[row];
            answer.ids.push(token);
            answer.ended = self.options.stop_ids.contains(&token);
            *done = answer.ended || answer.ids.len() >= self.options.max_new_tokens;
            made += 1;
            ended += usize::from(*done);
        }
        (made, ended)
    }

    fn drop_finished(&mut self) {
        let live: Vec<i64> = (0..self.rows.len()).filter(|&i| !self.done[i]).map(|i| i as i64).collect();
        if (self.rows.len() - live.len()) * 4 < self.rows.len() {
            return;
        }
        let keep = Tensor::from_slice(&live).to_device(self.target.device());
        self.rows = live.iter().map(|&i| self.rows[i as usize]).collect();
        let mut place = 0..;
        self.chances.retain(|_| place.next().is_some_and(|i| !self.done[i]));
        self.done = vec![false; live.len()];
        self.positions = self.positions.index_select(0, &keep);
        self.next = self.next.index_select(0, &keep);
        self.mask = self.mask.index_select(0, &keep);
        self.cache.select(&keep);
    }

    fn step(&mut self) {
        self.cache.reserve(1);
        let _ = self.mask.narrow(3, self.cache.length(), 1).zero_();
        let mask = self.mask.narrow(3, 0, self.cache.capacity());
        let (ids, positions) = (self.next.unsqueeze(1), self.positions.unsqueeze(1));
        let hidden = self.target.step(&ids, &positions, &mask, &mut self.cache, &[]).last;
        self.next = choose(&self.target.logits(&hidden.i((.., 0))), self.options, &mut self.chances);
        self.positions = &self.positions + 1i64;
    }
}

/// The next tokens `[b]` from logits [b, V].
fn choose(logits: &Tensor, options: &GenerateOptions, chances: &mut [StdRng]) -> Tensor {
    match &options.sampling {
        None => likeliest(logits),
        Some(sampling) => draw(logits, sampling.temperature, chances),
    }
}

/// Prompts that go through the target together at first: few, so that what lies between layers stays in the CPU's caches.
const PREFILL_ROWS: i64 = 4;

/// Reads the prompts ids [b, S] of `lengths` `[b]` into the cache; returns the logits of their answers' first tokens,
/// [b, V].
fn prefill(target: &Target, ids: &Tensor, lengths: &Tensor, cache: &mut KvCache) -> Tensor {
    let (rows, longest) = (ids.size()[0], ids.size()[1]);
    let some = if target.device() == Device::Cpu { PREFILL_ROWS } else { rows };
    let part = |first: i64| {
        let count = some.min(rows - first);
        let hidden = target.prefill(&ids.narrow(0, first, count), &mut cache.rows(first, count), &[]).last;
        let last = lengths.narrow(0, first, count) - 1i64;
        let last = last.view([-1, 1, 1]).expand([-1, 1, hidden.size()[2]], false);
        target.logits(&hidden.gather(1, &last, false).squeeze_dim(1))
    };
    let next: Vec<Tensor> = (0..rows).step_by(some as usize).map(part).collect();
    cache.advance(longest);
    Tensor::cat(&next, 0)
}

/// Rows that a cache may have beyond those that were asked for.
const SPARE: i64 = 64;

/// Shows each row its prompt of `lengths` `[b]` and hides all else, padding and what is yet to come: [b, 1, 1, rows].
fn padding_mask(lengths: &Tensor, rows: i64, kind: Kind) -> Tensor {
    let column = Tensor::arange(rows, (Kind::Int64, lengths.device())).view([1, 1, 1, -1]);
    let hidden = column.ge_tensor(&lengths.view([-1, 1, 1, 1]));
    Tensor::zeros(hidden.size(), (kind, lengths.device())).masked_fill(&hidden, f64::NEG_INFINITY)
}
