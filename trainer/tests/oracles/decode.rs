//! Greedy draft-verify against z-lab's loop: ids and acceptance lengths, exactly.

use crate::support::{data, ids, json};
use dflash_trainer::drafter::load;
use dflash_trainer::eval::{Agreement, DecodeOptions, decode, evaluate, judge};
use dflash_trainer::target::Target;
use tch::{Device, Kind};

#[test]
fn ids_and_acceptance_lengths_equal_z_labs() {
    for name in ["qwen3_b8", "llama_b16"] {
        let folder = data("decode").join(name);
        let target = Target::load(&folder.join("target"), Kind::Float, Device::Cpu).unwrap();
        let drafter = load(&folder.join("drafter"), Kind::Float, Device::Cpu).unwrap();
        for case in json(folder.join("expected.json"))["cases"].as_array().unwrap() {
            let prompt = ids(&case["prompt"]);
            let options = DecodeOptions {
                max_new_tokens: case["max_new_tokens"].as_u64().unwrap() as usize,
                stop_ids: ids(&case["stop_token_ids"]),
                block_size: case["block_size"].as_u64().unwrap() as usize,
                zero_features: false,
            };
            let got = decode(&target, &drafter, &prompt, &options);
            assert_eq!(got.ids, ids(&case["output_ids"]), "{name}");
            let lengths: Vec<i64> = got.acceptance_lengths.iter().map(|&l| l as i64).collect();
            assert_eq!(lengths, ids(&case["acceptance_lengths"]), "{name}");
            assert_eq!(judge(&target, &prompt, &got.ids).agreement, Agreement::Equal);
        }
    }
}

#[test]
fn tau_over_the_full_block_cases_is_z_labs() {
    let folder = data("decode/llama_b16");
    let target = Target::load(&folder.join("target"), Kind::Float, Device::Cpu).unwrap();
    let drafter = load(&folder.join("drafter"), Kind::Float, Device::Cpu).unwrap();
    let expected = json(folder.join("expected.json"));
    let full: Vec<_> = expected["cases"].as_array().unwrap().iter().filter(|c| c["block_size"] == 16).collect();
    let mut tau = 0.0;
    for case in &full {
        let options = DecodeOptions {
            max_new_tokens: case["max_new_tokens"].as_u64().unwrap() as usize,
            stop_ids: ids(&case["stop_token_ids"]),
            block_size: 0,
            zero_features: false,
        };
        let e = evaluate(&target, &drafter, &[ids(&case["prompt"])], &options, |_| {});
        assert_eq!(e.equality_line(), "equal 1, near-tie 0, wrong 0 of 1");
        tau += e.tau / full.len() as f64;
    }
    assert!((tau - expected["tau"].as_f64().unwrap()).abs() < 1e-9, "{tau}");
}

#[test]
fn a_token_that_the_target_would_not_say_is_wrong() {
    let folder = data("decode/qwen3_b8");
    let target = Target::load(&folder.join("target"), Kind::Float, Device::Cpu).unwrap();
    let case = &json(folder.join("expected.json"))["cases"][0];
    let mut answer = ids(&case["output_ids"]);
    answer[3] = (answer[3] + 1) % target.config.vocab_size;
    let judged = judge(&target, &ids(&case["prompt"]), &answer);
    assert_eq!(judged.agreement, Agreement::Wrong);
    assert!(judged.steps > 1.0);
}
