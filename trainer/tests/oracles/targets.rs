//! What a target's forward pass promises besides its numbers.

use crate::support::{data, ids, json, within, worst};
use dflash_trainer::drafter::{Row, packed};
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

/// Padding between and behind documents, two rows of different packings: each document is what it is alone.
#[test]
fn a_packed_document_is_what_it_is_alone() {
    let target = load("qwen3", Kind::Float);
    let documents = [vec![0, 0, 0, 1, 1, -1, 2, 2, 2, 2], vec![4, 4, 4, 4, 4, 4, 5, -1, -1, -1]];
    let ids: Vec<Vec<i64>> = (0..2).map(|row| (0..10).map(|i| (i * 37 + row * 13) % 90).collect()).collect();
    let rows: Vec<_> = (0..2)
        .map(|i| Row { ids: &ids[i], loss_mask: &[true; 10], documents: Some(&documents[i]), positions: None })
        .collect();
    let packed = packed(&rows, 10, Device::Cpu).unwrap();
    let input = Tensor::from_slice(&ids.concat()).view([2, 10]);
    let whole = target.drafter_features(&input, Some(&packed), &[0, 2], true);
    for (row, start, end) in [(0, 0, 3), (0, 3, 5), (0, 6, 10), (1, 0, 6), (1, 6, 7)] {
        let alone = target.drafter_features(&input.i((row..row + 1, start..end)), None, &[0, 2], true);
        let own = whole.i((row..row + 1, start..end));
        within(&format!("row {row}, {start}..{end}"), worst(&own, &alone), 1e-4);
    }
    assert!(whole.isfinite().all().int64_value(&[]) == 1, "padding must be numbers, too");
}

/// The same weights stored in another way: half precision, a head of its own beside a tied one, in shards.
#[test]
fn a_target_is_the_same_however_its_files_store_it() {
    let folder = data("targets/qwen2");
    let input = Tensor::from_slice(&[5i64, 6, 7, 8]).unsqueeze(0);
    let logits = |dir: &std::path::Path| {
        let target = Target::load(dir, Kind::Float, Device::Cpu).unwrap();
        assert!(target.head.equal(&target.embedding), "tied");
        target.logits(&target.features(&input, &[], true).last)
    };
    let want = logits(&folder);
    let weights = Tensor::read_safetensors(folder.join("model.safetensors")).unwrap();
    let named = |kind: Kind| weights.iter().map(|(n, t)| (n.clone(), t.to_kind(kind))).collect::<Vec<_>>();
    let half = named(Kind::Half);
    // What half precision cannot hold of bfloat16 is known.
    let lost = half.iter().zip(&weights).map(|((_, h), (_, b))| worst(h, b)).fold(0.0, f64::max);
    assert!(lost < 1e-6, "{lost}");
    let mut wide = named(Kind::Float);
    wide.push(("lm_head.weight".to_owned(), wide.iter().find(|(n, _)| n.contains("embed")).unwrap().1.copy()));
    for (name, tensors, tolerance) in [("half", half, 1e-4), ("wide", wide, 0.0)] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(folder.join("config.json"), dir.path().join("config.json")).unwrap();
        Tensor::write_safetensors(&tensors, dir.path().join("model.safetensors")).unwrap();
        within(name, worst(&logits(dir.path()), &want), tolerance);
        // And cut into shards.
        let (first, second) = tensors.split_at(tensors.len() / 2);
        Tensor::write_safetensors(first, dir.path().join("a.safetensors")).unwrap();
        Tensor::write_safetensors(second, dir.path().join("b.safetensors")).unwrap();
        std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
        let map = |part: &[(String, Tensor)], file: &str| -> Vec<(String, serde_json::Value)> {
            part.iter().map(|(n, _)| (n.clone(), file.into())).collect()
        };
        let map: serde_json::Map<_, _> =
            map(first, "a.safetensors").into_iter().chain(map(second, "b.safetensors")).collect();
        let index = serde_json::json!({ "weight_map": map }).to_string();
        std::fs::write(dir.path().join("model.safetensors.index.json"), index).unwrap();
        within(name, worst(&logits(dir.path()), &want), tolerance);
    }
}

/// Trained against the embedding, a drafter of a target with a head of its own would be served against another one.
#[test]
fn a_head_beside_a_tied_embedding_that_is_another_one_is_refused() {
    let folder = data("targets/qwen2");
    let mut tensors = Tensor::read_safetensors(folder.join("model.safetensors")).unwrap();
    let embedding = tensors.iter().find(|(n, _)| n.contains("embed")).unwrap().1.copy();
    tensors.push(("lm_head.weight".to_owned(), embedding * 2.0));
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("config.json"), dir.path().join("config.json")).unwrap();
    Tensor::write_safetensors(&tensors, dir.path().join("model.safetensors")).unwrap();
    let refused = Target::load(dir.path(), Kind::Float, Device::Cpu).unwrap_err().to_string();
    assert!(refused.contains("config.json: tie_word_embeddings is true, but `lm_head.weight` is not"), "{refused}");
}
