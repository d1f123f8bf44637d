//! Greedy draft-verify against z-lab's loop: ids and acceptance lengths, exactly.

use crate::support::{data, ids, json};
use dflash_trainer::drafter::load;
use dflash_trainer::eval::{Agreement, DecodeOptions, decode, evaluate, judge};
use dflash_trainer::target::Target;
use tch::{Device, Kind, Tensor};

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
                ..DecodeOptions::default()
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
            ..DecodeOptions::default()
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

/// Draft-verify at temperature 1 draws from the target's own distribution: the first two tokens of many answers against
/// their exact probabilities.
#[test]
fn drawn_tokens_have_the_targets_distribution() {
    const ANSWERS: u64 = 150;
    // Its products are tiny: threads would only wait for each other.
    tch::set_num_threads(1);
    let folder = data("decode/qwen3_b8");
    let target = Target::load(&folder.join("target"), Kind::Float, Device::Cpu).unwrap();
    let drafter = load(&folder.join("drafter"), Kind::Float, Device::Cpu).unwrap();
    let prompt = &ids(&json(folder.join("expected.json"))["cases"][0]["prompt"])[..];
    let vocab = target.config.vocab_size;
    let options = |seed| DecodeOptions { max_new_tokens: 2, temperature: 1.0, seed, ..DecodeOptions::default() };
    let answers: Vec<_> = (0..ANSWERS).map(|seed| decode(&target, &drafter, prompt, &options(seed)).ids).collect();
    let probabilities = |texts: &[Vec<i64>]| {
        let input = Tensor::from_slice(&texts.concat()).view([texts.len() as i64, -1]);
        let hidden = target.features(&input, &[], true).last;
        target.logits(&hidden.select(1, -1)).to_kind(Kind::Double).softmax(-1, Kind::Double)
    };
    // The exact distribution of the second token: over all first ones.
    let first = probabilities(&[prompt.to_vec()]);
    let continued: Vec<Vec<i64>> = (0..vocab).map(|id| [prompt, &[id]].concat()).collect();
    let second = Vec::<f64>::try_from(first.matmul(&probabilities(&continued)).view([-1])).unwrap();
    let first = Vec::<f64>::try_from(first.view([-1])).unwrap();
    for (at, p) in [&first, &second].into_iter().enumerate() {
        let drawn: Vec<i64> = answers.iter().map(|answer| answer[at]).collect();
        let (statistic, degrees) = chi_square(&drawn, p);
        assert!(degrees >= 2.0, "too few answers to tell anything");
        // Wilson and Hilferty's normal form of the statistic: five sigma is one in three million.
        let nine = 2.0 / (9.0 * degrees);
        let sigma = ((statistic / degrees).cbrt() - (1.0 - nine)) / nine.sqrt();
        assert!(sigma < 5.0, "token {at}: {statistic:.1} of {degrees} degrees");
        // The test tells one distribution from another.
        let wrong: Vec<i64> = drawn.iter().map(|id| (id + 1) % vocab).collect();
        let (statistic, degrees) = chi_square(&wrong, p);
        assert!(statistic > 5.0 * degrees, "{statistic:.1} of {degrees} degrees");
    }
}

/// Pearson's statistic and its degrees of freedom; tokens of fewer than five expected answers are put together.
fn chi_square(drawn: &[i64], p: &[f64]) -> (f64, f64) {
    let all = drawn.len() as f64;
    let (mut rare, mut statistic, mut bins) = ((0.0, 0.0), 0.0, 0.0);
    let mut add = |seen: f64, expected: f64| {
        statistic += (seen - expected).powi(2) / expected;
        bins += 1.0;
    };
    for (id, p) in p.iter().enumerate() {
        let (seen, expected) = (drawn.iter().filter(|&&d| d == id as i64).count() as f64, p * all);
        if expected < 5.0 {
            rare = (rare.0 + seen, rare.1 + expected);
        } else {
            add(seen, expected);
        }
    }
    if rare.1 > 0.0 {
        add(rare.0, rare.1);
    }
    (statistic, bins - 1.0)
}
