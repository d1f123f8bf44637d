//! Greedy draft-verify against z-lab's loop: ids and acceptance lengths, exactly.

use super::Report;
use crate::support::{data, ids, json};
use dflash_trainer::drafter::load;
use dflash_trainer::eval::{Agreement, DecodeOptions, decode, evaluate, judge};
use dflash_trainer::target::Target;
use serde_json::Value;
use std::path::Path;
use tch::{Device, Kind};

pub const CASES: [&str; 2] = ["qwen3_b8", "llama_b16"];

fn options(case: &Value) -> DecodeOptions {
    DecodeOptions {
        max_new_tokens: case["max_new_tokens"].as_u64().unwrap() as usize,
        stop_ids: ids(&case["stop_token_ids"]),
        block_size: case["block_size"].as_u64().unwrap() as usize,
        ..DecodeOptions::default()
    }
}

#[test]
fn parity_decode() {
    let mut report = Report::new("decode");
    for name in CASES {
        let folder = data("decode").join(name);
        let target = Target::load(&folder.join("target"), Kind::Float, Device::Cpu).unwrap();
        let drafter = load(&folder.join("drafter"), Kind::Float, Device::Cpu).unwrap();
        let expected = json(folder.join("expected.json"));
        let cases = expected["cases"].as_array().unwrap();
        let (mut ids_differ, mut lengths_differ, mut unequal, mut tau) = (0, 0, 0, Vec::new());
        for case in cases {
            let prompt = ids(&case["prompt"]);
            let got = decode(&target, &drafter, &prompt, &options(case));
            let lengths: Vec<i64> = got.acceptance_lengths.iter().map(|&l| l as i64).collect();
            ids_differ += usize::from(got.ids != ids(&case["output_ids"]));
            lengths_differ += usize::from(lengths != ids(&case["acceptance_lengths"]));
            unequal += usize::from(judge(&target, &prompt, &got.ids).agreement != Agreement::Equal);
            if case["block_size"].as_i64() == Some(drafter.config.block_size) {
                let whole = DecodeOptions { block_size: 0, ..options(case) };
                tau.push(evaluate(&target, &drafter, &[prompt], &whole, |_| {}).tau);
            }
        }
        let tau = tau.iter().sum::<f64>() / tau.len() as f64;
        let narrow = bf16_wrong(&folder, cases);
        let mut line = report.line(name);
        line.check(&format!("{} cases: ids", cases.len()), f64::from(ids_differ as u32), 0.0);
        line.check("acceptance lengths", f64::from(lengths_differ as u32), 0.0);
        line.check("not the target's own", f64::from(unequal as u32), 0.0);
        line.check("tau", (tau - expected["tau"].as_f64().unwrap()).abs(), 1e-9);
        line.check("bf16: not the target's own", f64::from(narrow), 0.0);
    }
    report.finish();
}

/// In bfloat16 ids are compared with the same target's own choices, but for near ties.
fn bf16_wrong(folder: &Path, cases: &[Value]) -> u32 {
    let target = Target::load(&folder.join("target"), Kind::BFloat16, Device::Cpu).unwrap();
    let drafter = load(&folder.join("drafter"), Kind::BFloat16, Device::Cpu).unwrap();
    let wrong = cases.iter().filter(|case| {
        let prompt = ids(&case["prompt"]);
        let got = decode(&target, &drafter, &prompt, &options(case));
        judge(&target, &prompt, &got.ids).agreement == Agreement::Wrong
    });
    wrong.count() as u32
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
