//! Targets against transformers: logits, every layer's output, greedy ids.

use crate::support::{Tensors, data, ids, json, relative, within, worst};
use dflash_trainer::drafter::target_layer_ids;
use dflash_trainer::model::attention::causal_mask;
use dflash_trainer::target::{GenerateOptions, Target, generate};
use tch::{Device, IndexOp, Kind, Tensor};

const FAMILIES: [&str; 5] = ["llama", "llama3_rope", "qwen2", "qwen3", "qwen3_sharded"];

fn load(family: &str, kind: Kind) -> Target {
    Target::load(&data("targets").join(family), kind, Device::Cpu).unwrap()
}

#[test]
fn logits_and_layer_outputs_equal_those_of_transformers() {
    for family in FAMILIES {
        let target = load(family, Kind::Float);
        let expected = Tensors::read(data("targets").join(family).join("expected.safetensors"));
        let taps: Vec<usize> = (0..target.config.layers as usize).collect();
        let features = target.features(&expected.get("input_ids"), &taps, true);
        within(family, worst(&Tensor::stack(&features.taps, 0), &expected.get("layer_outputs")), 2e-4);
        within(family, worst(&target.logits(&features.last), &expected.get("logits")), 2e-4);
    }
}

#[test]
fn bfloat16_stays_near() {
    for family in FAMILIES {
        let target = load(family, Kind::BFloat16);
        let expected = Tensors::read(data("targets").join(family).join("expected.safetensors"));
        let features = target.features(&expected.get("input_ids"), &[], true);
        within(family, relative(&target.logits(&features.last), &expected.get("logits")), 0.1);
    }
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
fn greedy_answers_equal_those_of_transformers_alone_and_in_a_batch() {
    for family in FAMILIES {
        let target = load(family, Kind::Float);
        let expected = json(data("targets").join(family).join("expected.json"));
        let cases = expected["greedy"].as_array().unwrap();
        let prompts: Vec<_> = cases.iter().map(|c| ids(&c["prompt"])).collect();
        for batch in [1, prompts.len()] {
            let options = GenerateOptions { max_new_tokens: 32, batch, stop_ids: Vec::new(), sampling: None };
            let answers = generate(&target, &prompts, &options, |_, _| {});
            for (answer, case) in answers.iter().zip(cases) {
                assert_eq!(answer.ids, ids(&case["output_ids"]), "{family}, batch of {batch}");
            }
        }
    }
}

#[test]
fn answers_that_end_leave_the_batch_and_change_no_other() {
    let target = load("qwen3", Kind::Float);
    let expected = json(data("targets/qwen3/expected.json"));
    let prompts: Vec<_> = expected["greedy"].as_array().unwrap().iter().map(|c| ids(&c["prompt"])).collect();
    let whole = |stop_ids| GenerateOptions { max_new_tokens: 32, batch: 8, stop_ids, sampling: None };
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
fn both_forms_of_the_configuration_are_read_alike() {
    for family in FAMILIES {
        let folder = data("targets").join(family);
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder.join("config.legacy.json"), copy.path().join("config.json")).unwrap();
        let newer = dflash_trainer::target::TargetConfig::load(&folder).unwrap();
        assert_eq!(dflash_trainer::target::TargetConfig::load(copy.path()).unwrap(), newer, "{family}");
    }
}

#[test]
fn tap_ids_follow_the_fixtures() {
    for family in FAMILIES {
        let target = load(family, Kind::Float);
        let expected = json(data("targets").join(family).join("expected.json"));
        for (layers, want) in expected["target_layer_ids"].as_object().unwrap() {
            let got = target_layer_ids(target.config.layers as usize, layers.parse().unwrap());
            assert_eq!(got, ids(want).into_iter().map(|id| id as usize).collect::<Vec<_>>(), "{family}");
        }
    }
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
