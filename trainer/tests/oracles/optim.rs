//! Twenty optimizer steps against SpecForge and torch.

use crate::support::{Tensors, data, json, relative, within, worst};
use dflash_trainer::drafter::anchors::{Row, layout};
use dflash_trainer::drafter::{BlockMask, DFlashDrafter, DrafterConfig};
use dflash_trainer::loss::{HeadRows, cross_entropy};
use dflash_trainer::optim::{MuonSettings, Optimizer, Settings};
use serde_json::Value;
use tch::{Device, IndexOp, Kind, Tensor};

struct Run {
    drafter: DFlashDrafter,
    batches: Tensors,
    record: Value,
}

impl Run {
    fn load(name: &str) -> Self {
        let config = DrafterConfig::load(&data("optim")).unwrap();
        let start = Tensors::read(data("optim/start.safetensors"));
        let drafter = DFlashDrafter::build(&config, Kind::Float, Device::Cpu, |name, _| {
            Ok::<_, std::convert::Infallible>(start.get(name).copy())
        })
        .unwrap();
        drafter.require_gradients();
        let batches = Tensors::read(data("optim/batches.safetensors"));
        Self { drafter, batches, record: json(data("optim").join(format!("{name}.json"))) }
    }

    fn loss(&self, step: usize) -> Tensor {
        let at = (step % 5) as i64;
        let batch = |name: &str| self.batches.get(name).i(at);
        let list = |name: &str| Vec::<i64>::try_from(batch(name).view([-1])).unwrap();
        let (ids, anchors) = (list("input_ids"), list("anchors"));
        let loss_mask: Vec<bool> = list("loss_mask").iter().map(|&m| m > 0).collect();
        let keep = Vec::<bool>::try_from(batch("keep").view([-1])).unwrap();
        let drawn = anchors.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(&a, _)| a as usize).collect();
        let c = &self.drafter.config;
        let row = Row { ids: &ids, loss_mask: &loss_mask };
        let blocks = layout(&[row], &[drawn], anchors.len(), c.block_size as usize, c.mask_token_id, Device::Cpu);
        let embedded = Tensor::embedding(&self.batches.get("embed_tokens"), &blocks.ids, -1, false, false);
        let mask = BlockMask::new(&blocks.anchors, &blocks.keep, ids.len() as i64, c.block_size, Device::Cpu);
        let y = self.drafter.forward(&batch("target_hidden"), &embedded, &blocks.positions, &mask);
        let head = HeadRows { weight: self.batches.get("lm_head"), row_of: None };
        cross_entropy(&y, &blocks.slots, &head, self.record["gamma"].as_f64().unwrap()).mean
    }
}

fn settings(record: &Value) -> Settings {
    let s = &record["settings"];
    let number = |key: &str| s[key].as_f64().unwrap();
    Settings {
        learning_rate: number("lr"),
        betas: (s["betas"][0].as_f64().unwrap(), s["betas"][1].as_f64().unwrap()),
        weight_decay: number("weight_decay"),
        muon: s["muon_lr"].as_f64().map(|learning_rate| MuonSettings {
            learning_rate,
            momentum: number("muon_momentum"),
            weight_decay: number("muon_weight_decay"),
            iterations: s["muon_ns_steps"].as_u64().unwrap() as usize,
        }),
        clip: number("clip"),
    }
}

/// Follows a recorded run with the learning rates of its rows; tolerances for loss and norm.
fn follow(name: &str, loss_tolerance: f64, norm_tolerance: f64) -> Run {
    let run = Run::load(name);
    let mut optimizer = Optimizer::new(run.drafter.parameters(), settings(&run.record));
    let base = run.record["settings"]["lr"].as_f64().unwrap();
    for (step, row) in run.record["steps"].as_array().unwrap().iter().enumerate() {
        let loss = run.loss(step);
        loss.backward();
        let norm = optimizer.clip().double_value(&[]);
        optimizer.step(row["lr"].as_f64().unwrap() / base);
        within(name, (loss.double_value(&[]) - row["loss"].as_f64().unwrap()).abs(), loss_tolerance);
        within(name, (norm - row["gradient_norm"].as_f64().unwrap()).abs(), norm_tolerance);
    }
    run
}

#[test]
fn adamw_follows_specforge() {
    for name in ["adamw_999", "adamw_95"] {
        let run = follow(name, 1e-5, 1e-5);
        let last = Tensors::read(data("optim").join(format!("{name}.final.safetensors")));
        for (tensor, weight) in run.drafter.parameters() {
            within(&format!("{name} {tensor}"), worst(&weight.detach(), &last.get(tensor)), 1e-5);
        }
    }
}

#[test]
fn muon_follows_torch() {
    let run = follow("muon", 1e-4, 1e-3);
    let start = Tensors::read(data("optim/start.safetensors"));
    let last = Tensors::read(data("optim/muon.final.safetensors"));
    for (name, want) in last.iter() {
        let (_, got) = run.drafter.parameters().iter().find(|(n, _)| n == name).unwrap();
        within(name, worst(&got.detach(), want), 3e-3);
    }
    for (name, got) in run.drafter.parameters() {
        let want = run.record["final"][name]["moved"].as_f64().unwrap();
        let moved = (got.detach() - start.get(name)).norm().double_value(&[]);
        assert!((moved / want - 1.0).abs() < 0.1, "{name} moved {moved}, torch's {want}");
    }
}

/// Weights in bfloat16 would swallow steps of this size; masters in float32 must not.
#[test]
fn small_steps_add_up_in_the_masters() {
    let weight = Tensor::ones([4, 4], (Kind::BFloat16, Device::Cpu)).set_requires_grad(true);
    let settings = Settings { learning_rate: 1e-4, betas: (0.9, 0.999), weight_decay: 0.0, muon: None, clip: 0.0 };
    let mut optimizer = Optimizer::new(&[("w".to_owned(), weight.shallow_clone())], settings);
    for _ in 0..100 {
        weight.sum(Kind::Float).backward();
        optimizer.step(1.0);
    }
    let want = Tensor::full([4, 4], 1.0 - 100.0 * 1e-4, (Kind::Float, Device::Cpu));
    within("weight", relative(&weight.detach(), &want), 0.004);
}
