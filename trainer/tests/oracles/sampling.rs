//! Draft-verify by chance: what is drawn has the target's own distribution.

use crate::support::{data, ids, json};
use dflash_trainer::drafter::load;
use dflash_trainer::eval::{DecodeOptions, decode};
use dflash_trainer::target::Target;
use tch::{Device, Kind, Tensor};

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
