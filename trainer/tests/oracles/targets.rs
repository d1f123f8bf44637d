//! What a target's forward pass promises besides its numbers.

use crate::support::{data, ids, json, within, worst};
use dflash_trainer::model::attention::causal_mask;
use dflash_trainer::target::{GenerateOptions, Target, generate};
use tch::{Device, IndexOp, Kind, Tensor};

fn load(family: &str, kind: Kind) -> Target {
    Target::load(&data("targets").join(family), kind, Device::Cpu).unwrap()
}

#[test]
fn a_tap_stops_the_forward_and_equals_the_whole_one() {
    let target = load("qwen3", Kind::Float);
    let input = Tensor::from_slice(&[5i64, 6, 7, 8]).unsqueeze(0);
    let (short, whole) = (target.features(&input, &[1, 0], false), target.features(&input, &[1, 0], true));
    for (a, b) in short.taps.iter().zip(&whole.taps) {
        assert_eq!(worst(a, b), 0.0);
    }
    assert_eq!(worst(&short.last, &short.taps[0]), 0.0, "stops after the highest tap, whatever their order");
}

#[test]
fn answers_that_end_leave_the_batch_and_change_no_other() {
    let target = load("qwen3", Kind::Float);
    let expected = json(data("targets/qwen3/expected.json"));
    let prompts: Vec<_> = expected["greedy"].as_array().unwrap().iter().map(|c| ids(&c["prompt"])).collect();
    let whole = |stop_ids| GenerateOptions { max_new_tokens: 32, batch: 8, stop_ids };
    let free = generate(&target, &prompts, &whole(Vec::new()), |_, _| {});
    let stop = free[0].ids[4];
    let mut made = 0;
    let stopped = generate(&target, &prompts, &whole(vec![stop]), |tokens, _| made += tokens);
    for (free, stopped) in free.iter().zip(&stopped) {
        let end = free.ids.iter().position(|&id| id == stop).map_or(free.ids.len(), |i| i + 1);
        assert_eq!(stopped.ids, free.ids[..end]);
        assert_eq!(stopped.ended, end < free.ids.len() || free.ids.last() == Some(&stop));
    }
    assert_eq!(made, stopped.iter().map(|a| a.ids.len()).sum::<usize>());
}

#[test]
fn a_cached_step_equals_the_whole_pass() {
    let target = load("llama", Kind::Float);
    let text: Vec<i64> = (0..20).map(|i| (i * 37 + 11) % target.config.vocab_size).collect();
    let whole = target.features(&Tensor::from_slice(&text).unsqueeze(0), &[0, 2], true);
    let mut cache = target.cache(1, 20);
    let _ = target.prefill(&Tensor::from_slice(&text[..12]).unsqueeze(0), &mut cache, &[]);
    let positions = Tensor::arange_start(12, 20, (Kind::Int64, Device::Cpu));
    cache.reserve(8);
    let mask = causal_mask(12, 8, cache.capacity(), Kind::Float, Device::Cpu);
    let input = Tensor::from_slice(&text[12..]).unsqueeze(0);
    let step = target.step(&input, &positions, &mask, &mut cache, &[0, 2]);
    within("last", worst(&step.last, &whole.last.i((.., 12..))), 1e-4);
    within("tap", worst(&step.taps[1], &whole.taps[1].i((.., 12..))), 1e-4);
    assert_eq!(cache.length(), 20);
}
