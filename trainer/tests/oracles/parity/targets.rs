//! Targets against transformers: logits, every layer's output, packed documents, greedy ids.

use super::Report;
use crate::support::{Tensors, data, ids, json, relative, worst};
use dflash_trainer::drafter::{Packed, Row, packed, target_layer_ids};
use dflash_trainer::target::{GenerateOptions, Target, TargetConfig, generate};
use tch::{Device, Kind, Tensor};

pub const FAMILIES: [&str; 5] = ["llama", "llama3_rope", "qwen2", "qwen3", "qwen3_sharded"];

/// The row of several documents.
fn packing(want: &Tensors) -> Packed {
    let list = |name: &str| Vec::<i64>::try_from(want.get(name).view([-1])).unwrap();
    let (ids, documents) = (list("packed_input_ids"), list("packed_document_ids"));
    let mask = vec![true; ids.len()];
    let row = Row { ids: &ids, loss_mask: &mask, documents: Some(&documents), positions: None };
    let packed = packed(&[row], ids.len(), Device::Cpu).unwrap();
    assert_eq!(worst(&packed.positions, &want.get("packed_position_ids")), 0.0);
    packed
}

#[test]
fn parity_targets() {
    let mut report = Report::new("targets");
    for family in FAMILIES {
        let folder = data("targets").join(family);
        let want = Tensors::read(folder.join("expected.safetensors"));
        let mut line = report.line(family);
        for (kind, tolerance, word) in [(Kind::Float, 1e-4, ""), (Kind::BFloat16, 0.1, " bf16")] {
            let target = Target::load(&folder, kind, Device::Cpu).unwrap();
            let error = |got: &Tensor, want: &Tensor| match kind {
                Kind::Float => worst(got, want),
                _ => relative(got, want),
            };
            let taps: Vec<usize> = (0..target.config.layers as usize).collect();
            let whole = target.features(&want.get("input_ids"), &taps, true);
            line.check(&format!("logits{word}"), error(&target.logits(&whole.last), &want.get("logits")), tolerance);
            let layers = Tensor::stack(&whole.taps, 0);
            line.check(&format!("layers{word}"), error(&layers, &want.get("layer_outputs")), tolerance);
            let row = target.packed_features(&want.get("packed_input_ids"), &packing(&want), &taps, true);
            let logits = target.logits(&row.last);
            line.check(&format!("packed{word}"), error(&logits, &want.get("packed_logits")), tolerance);
            let layers = Tensor::stack(&row.taps, 0);
            let layers = error(&layers, &want.get("packed_layer_outputs"));
            line.check(&format!("packed layers{word}"), layers, tolerance);
        }
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder.join("config.legacy.json"), copy.path().join("config.json")).unwrap();
        let newer = TargetConfig::load(&folder).unwrap();
        line.same("legacy config", TargetConfig::load(copy.path()).unwrap(), newer.clone());
        for (layers, want) in json(folder.join("expected.json"))["target_layer_ids"].as_object().unwrap() {
            let got = target_layer_ids(newer.layers as usize, layers.parse().unwrap());
            line.same("taps", got, ids(want).into_iter().map(|id| id as usize).collect());
        }
    }
    report.finish();
}

#[test]
fn parity_targets_greedy() {
    let mut report = Report::new("targets");
    for family in FAMILIES {
        let folder = data("targets").join(family);
        let target = Target::load(&folder, Kind::Float, Device::Cpu).unwrap();
        let expected = json(folder.join("expected.json"));
        let cases = expected["greedy"].as_array().unwrap();
        let prompts: Vec<_> = cases.iter().map(|c| ids(&c["prompt"])).collect();
        let mut line = report.line(format!("{family} greedy"));
        for batch in [1, prompts.len()] {
            let options = GenerateOptions { max_new_tokens: 32, batch, stop_ids: Vec::new(), sampling: None };
            let answers = generate(&target, &prompts, &options, |_, _| {});
            let differ = answers.iter().zip(cases).filter(|(a, c)| a.ids != ids(&c["output_ids"])).count();
            line.check(&format!("answers, batch of {batch}"), differ as f64, 0.0);
        }
    }
    report.finish();
}
