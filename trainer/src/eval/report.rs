//! An evaluation over many prompts, and its figures.

use super::{Agreement, DecodeOptions, Judgement, decode, judge};
use crate::drafter::DFlashDrafter;
use crate::target::Target;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Figures of a drafter over held-out prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evaluation {
    /// Prompts answered.
    pub prompts: usize,
    /// Tokens emitted.
    pub tokens: usize,
    /// tau: the mean over prompts of each prompt's mean acceptance length.
    pub tau: f64,
    /// Mean acceptance length over all verifications of all prompts.
    pub pooled: f64,
    /// How often each acceptance length 1..=B occurred.
    pub histogram: Vec<usize>,
    /// Answers whose every token is the target's likeliest under teacher forcing.
    pub equal: usize,
    /// Answers with a tie that bfloat16 broke the other way.
    pub near_tie: usize,
    /// Answers with a token that lies further below the target's likeliest than one bfloat16 step.
    pub wrong: usize,
    /// The largest distance of a token below the likeliest, in bfloat16 steps.
    pub steps_below: f64,
    /// Seconds of decoding, prefill included.
    pub seconds: f64,
    #[serde(skip)]
    sum_of_means: f64,
}

/// Answers every prompt by draft-verify and judges every greedy answer. `progress` is called after each prompt.
#[must_use]
pub fn evaluate(
    target: &Target,
    drafter: &DFlashDrafter,
    prompts: &[Vec<i64>],
    options: &DecodeOptions,
    mut progress: impl FnMut(&Evaluation),
) -> Evaluation {
    evaluate_while(target, drafter, prompts, options, |e| {
        if e.prompts > 0 {
            progress(e);
        }
        true
    })
    .unwrap_or_default()
}

/// As [`evaluate`]; `go_on` is asked before the first prompt and after each. `None`: it said no before all were answered.
#[must_use]
pub fn evaluate_while(
    target: &Target,
    drafter: &DFlashDrafter,
    prompts: &[Vec<i64>],
    options: &DecodeOptions,
    mut go_on: impl FnMut(&Evaluation) -> bool,
) -> Option<Evaluation> {
    let mut e = Evaluation { histogram: vec![0; drafter.config.block_size as usize], ..Evaluation::default() };
    if !go_on(&e) {
        return None;
    }
    for (at, prompt) in prompts.iter().enumerate() {
        let options = &DecodeOptions { seed: options.seed.wrapping_add(at as u64), ..options.clone() };
        let began = Instant::now();
        let decoded = decode(target, drafter, prompt, options);
        e.add(&decoded.acceptance_lengths, decoded.ids.len(), began.elapsed());
        // What was drawn is compared with nothing: any token may be.
        if options.temperature == 0.0 {
            e.judge(judge(target, prompt, &decoded.ids));
        }
        if !go_on(&e) && e.prompts < prompts.len() {
            return None;
        }
    }
    Some(e)
}

impl Evaluation {
    fn add(&mut self, lengths: &[usize], tokens: usize, took: Duration) {
        self.prompts += 1;
        self.tokens += tokens;
        self.seconds += took.as_secs_f64();
        for &length in lengths {
            self.histogram[length - 1] += 1;
        }
        self.sum_of_means += mean(lengths.iter().map(|&l| (l, 1)));
        self.tau = self.sum_of_means / self.prompts as f64;
        self.pooled = mean(self.histogram.iter().enumerate().map(|(i, &count)| (i + 1, count)));
    }

    fn judge(&mut self, judged: Judgement) {
        self.steps_below = self.steps_below.max(judged.steps);
        match judged.agreement {
            Agreement::Equal => self.equal += 1,
            Agreement::NearTie => self.near_tie += 1,
            Agreement::Wrong => self.wrong += 1,
        }
    }

    /// `equal 30, near-tie 2, wrong 0 of 32`, and how far below the likeliest a token was, if one was.
    #[must_use]
    pub fn equality_line(&self) -> String {
        let line =
            format!("equal {}, near-tie {}, wrong {} of {}", self.equal, self.near_tie, self.wrong, self.prompts);
        match self.steps_below {
            0.0 => line,
            steps => format!("{line} (at most {steps:.1} bfloat16 steps below the likeliest)"),
        }
    }

    /// Tokens a second.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.tokens as f64 / self.seconds } else { 0.0 }
    }
}

fn mean(values: impl Iterator<Item = (usize, usize)>) -> f64 {
    let (sum, count) = values.fold((0, 0), |(sum, count), (value, times)| (sum + value * times, count + times));
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_is_the_mean_of_means_and_pooled_is_not() {
        let mut e = Evaluation { histogram: vec![0; 4], ..Evaluation::default() };
        e.add(&[1, 1, 1, 1], 4, Duration::ZERO);
        e.add(&[4, 2], 6, Duration::ZERO);
        assert_eq!((e.tau, e.pooled), (2.0, 10.0 / 6.0));
        assert_eq!(e.histogram, [4, 1, 0, 1]);
    }
}
