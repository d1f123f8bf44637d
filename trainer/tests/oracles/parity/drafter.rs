//! The drafter's training forward and losses against SpecForge (and the other trainers' reductions).

use super::Report;
use crate::case::{CASES, Case, kept};
use crate::support::{Tensors, data, json, relative, worst};
use dflash_trainer::config::{LayerType, MaskForm, Objective, Reduction, WindowRule};
use dflash_trainer::drafter::{Blocks, Sliding};
use dflash_trainer::loss::{Goal, Loss, simulated_acceptance};
use serde_json::Value;
use tch::{Kind, Tensor};

pub(super) struct Oracle {
    name: &'static str,
    tensors: Tensors,
    pub(super) figures: Value,
}

impl Oracle {
    pub(super) fn load(name: &'static str) -> Self {
        let folder = data("drafter").join(name);
        let tensors = Tensors::read(folder.join("expected.safetensors"));
        Self { name, tensors, figures: json(folder.join("expected.json")) }
    }

    pub(super) fn number(&self, path: &str) -> f64 {
        self.figures.pointer(path).unwrap_or_else(|| panic!("{path}")).as_f64().unwrap()
    }

    /// Logits of the kept blocks.
    fn logits(&self, logits: &Tensor, blocks: &Blocks) -> Tensor {
        kept(&logits.flatten(0, 1), blocks)
    }

    pub(super) fn goal(&self, objective: Objective, reduction: Reduction) -> Goal {
        let block = self.tensors.get("labels").size()[2];
        Goal {
            objective,
            reduction,
            gamma: self.number("/gamma"),
            alpha: self.number("/alpha"),
            block,
            chunk_blocks: 0,
        }
    }
}

#[test]
fn parity_drafter_forward() {
    let mut report = Report::new("drafter");
    for name in CASES {
        let oracle = Oracle::load(name);
        let mut case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let want = oracle.logits(&oracle.tensors.get("logits"), &blocks);
        let mut line = report.line(format!("{name} forward"));
        let fused = case.kept_logits(&case.forward(&blocks, &case.hidden()), &blocks);
        line.check("logits", worst(&fused, &want), 5e-5);
        case.form = MaskForm::Dense;
        let dense = case.kept_logits(&case.forward(&blocks, &case.hidden()), &blocks);
        line.check("dense", worst(&dense, &want), 5e-5);
        case.drafter.split_fc = true;
        let split = case.kept_logits(&case.forward(&blocks, &case.hidden()), &blocks);
        line.check("split fc", worst(&split, &want), 5e-5);
        for (mask, layer) in [("mask_full", LayerType::FullAttention), ("mask_sliding", LayerType::SlidingAttention)] {
            if let Some(want) = oracle.tensors.find(mask) {
                let differ = case.dense(&blocks, layer).not_equal_tensor(&want).sum(Kind::Int64);
                line.check(mask, differ.double_value(&[]), 0.0);
            }
        }
        let narrow = Case::load(name, Kind::BFloat16);
        let logits = narrow.kept_logits(&narrow.forward(&blocks, &narrow.hidden()), &blocks);
        line.check("bf16", relative(&logits, &want), 0.03);
    }
    report.finish();
}

#[test]
fn parity_drafter_sliding_rules_of_others() {
    let mut report = Report::new("drafter");
    for name in ["mixed_sliding_b8", "all_sliding_b16", "packed_sliding_b4"] {
        let variants = Tensors::read(data("drafter").join(name).join("variants.safetensors"));
        let rules = [
            ("logits_anchor_causal", WindowRule::Anchor, true),
            ("logits_query_bidirectional", WindowRule::Slot, false),
        ];
        let mut line = report.line(format!("{name} variants"));
        for (tensor, rule, causal) in rules {
            for form in [MaskForm::Fused, MaskForm::Dense] {
                let mut case = Case::load(name, Kind::Float);
                let window = case.drafter.config.sliding.unwrap().window;
                case.drafter.config.sliding = Some(Sliding { window, rule, causal });
                case.form = form;
                let blocks = case.blocks();
                let want = kept(&variants.get(tensor).flatten(0, 1), &blocks);
                let got = case.kept_logits(&case.forward(&blocks, &case.hidden()), &blocks);
                line.check(&tensor[7..], worst(&got, &want), 5e-5);
            }
        }
    }
    report.finish();
}

#[test]
fn parity_drafter_slots_and_figures() {
    let mut report = Report::new("drafter");
    for name in CASES {
        let oracle = Oracle::load(name);
        let case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let supervised = oracle.tensors.get("weights").view([-1]).nonzero().squeeze_dim(1);
        let labels = oracle.tensors.get("labels").view([-1]).index_select(0, &supervised);
        let list = |t: Tensor| Vec::<i64>::try_from(t).unwrap();
        let mut line = report.line(format!("{name} slots"));
        line.same("weights", &blocks.slots.index, &list(supervised.shallow_clone()));
        line.same("labels", &blocks.slots.label, &list(labels));
        let goal = oracle.goal(Objective::Kl, Reduction::Auto);
        let loss = case.loss(&case.forward(&blocks, &case.hidden()), &blocks, &goal);
        let metrics = &oracle.figures["metrics"];
        let hits = list(loss.figures.hits.shallow_clone());
        line.same("correct", &hits, &crate::support::ids(&metrics["correct"]));
        let totals: Vec<i64> = blocks.slots.totals(goal.block as usize).iter().map(|&n| n as i64).collect();
        line.same("total", totals.clone(), crate::support::ids(&metrics["total"]));
        line.same("blocks", blocks.slots.blocks(goal.block) as i64, metrics["blocks"].as_i64().unwrap());
        let accepted = loss.figures.accepted.int64_value(&[]);
        line.same("accepted", accepted, metrics["block_accept_sum"].as_i64().unwrap());
        let rates: Vec<f64> = hits.iter().zip(&totals).skip(1).map(|(&h, &t)| h as f64 / t.max(1) as f64).collect();
        let simulated = (simulated_acceptance(&rates) - metrics["sim_accept_len"].as_f64().unwrap()).abs();
        line.check("simulated", simulated, 1e-6);
        let expected = loss.figures.expected.unwrap().double_value(&[]);
        line.check("expected", (expected - metrics["tau_prob_sum"].as_f64().unwrap()).abs(), 1e-4);
        let accuracy = hits.iter().sum::<i64>() as f64 / blocks.slots.len() as f64;
        line.check("accuracy", (accuracy - metrics["accuracy"].as_f64().unwrap()).abs(), 1e-6);
        // Of each slot the mean over its blocks, as metrics.csv has it.
        let each = oracle.tensors.get("ce_per_slot") * oracle.tensors.get("weights");
        let sums = each.view([-1, goal.block]).sum_dim_intlist(0, false, Kind::Double);
        let count = Tensor::from_slice(&totals).clamp_min(1);
        line.check("entropy of a slot", worst(&(&loss.figures.entropy / &count), &(sums / &count)), 1e-5);
    }
    report.finish();
}

/// |got - want| / |want|, for sums, which grow with the slots.
pub(super) fn off(got: f64, want: f64) -> f64 {
    (got / want - 1.0).abs()
}

#[test]
fn parity_drafter_losses() {
    let mut report = Report::new("drafter");
    for name in CASES {
        let oracle = Oracle::load(name);
        let case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let y = case.forward(&blocks, &case.hidden());
        let run = |objective, reduction| case.loss(&y, &blocks, &oracle.goal(objective, reduction));
        let value = |loss: &Loss| loss.mean.double_value(&[]);
        let mut line = report.line(format!("{name} losses"));
        for (gamma, want) in oracle.figures["ce_by_gamma"].as_object().unwrap() {
            let goal = Goal { gamma: gamma.parse().unwrap(), ..oracle.goal(Objective::CrossEntropy, Reduction::Auto) };
            let loss = case.loss(&y, &blocks, &goal);
            let number = |key: &str| want[key].as_f64().unwrap();
            let numerator = value(&loss) * loss.denominator;
            line.check(&format!("ce {gamma}"), (value(&loss) - number("loss")).abs(), 1e-5);
            let sums = off(numerator, number("numerator")).max(off(loss.denominator, number("decayed_denominator")));
            line.check("its sums", sums, 1e-6);
        }
        let slots = blocks.slots.len() as f64;
        let mut means = |what: &str, objective, reduction, path: &str, tolerance| {
            // speculators adds 1e-5 to its number of slots, lest it divide by zero.
            let eased = if reduction == Reduction::SupervisedMean { (slots + 1e-5) / slots } else { 1.0 };
            let (got, want) = (value(&run(objective, reduction)), oracle.number(path) * eased);
            // D-PACE's is a sum of 5 to 420.
            let error = if objective == Objective::Dpace { off(got, want) } else { (got - want).abs() };
            line.check(what, error, tolerance);
        };
        means("ce mean", Objective::CrossEntropy, Reduction::SupervisedMean, "/ce/loss_mask_mean", 1e-5);
        means("dpace", Objective::Dpace, Reduction::Auto, "/dpace/loss", 1e-6);
        means("dpace mean", Objective::Dpace, Reduction::SupervisedMean, "/dpace/loss_mask_mean", 1e-6);
        means("dpace weighted", Objective::Dpace, Reduction::WeightedMean, "/dpace/loss_weighted_mean", 1e-6);
        means("kl", Objective::Kl, Reduction::Auto, "/kl/loss", 1e-5);
        means("kl mean", Objective::Kl, Reduction::SupervisedMean, "/kl/loss_mask_mean", 1e-5);
        let kl = run(Objective::Kl, Reduction::Auto);
        line.check("kl sum", off(value(&kl) * kl.denominator, oracle.number("/kl/numerator")), 1e-6);
        bf16_losses(&oracle, &mut line);
    }
    report.finish();
}

fn bf16_losses(oracle: &Oracle, line: &mut super::Line<'_>) {
    let case = Case::load(oracle.name, Kind::BFloat16);
    let blocks = case.blocks();
    let y = case.forward(&blocks, &case.hidden());
    for (objective, path) in [(Objective::CrossEntropy, "/ce/loss"), (Objective::Kl, "/kl/loss")] {
        let loss = case.loss(&y, &blocks, &oracle.goal(objective, Reduction::Auto)).mean.double_value(&[]);
        line.check("bf16", (loss - oracle.number(path)).abs(), 0.02);
    }
    let dpace = case.loss(&y, &blocks, &oracle.goal(Objective::Dpace, Reduction::Auto)).mean.double_value(&[]);
    line.check("bf16 dpace", (dpace / oracle.number("/dpace/loss") - 1.0).abs(), 0.01);
}
