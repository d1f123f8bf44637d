//! The drafter's training forward against SpecForge: logits, labels, loss, gradients.

use crate::support::{Tensors, data, json, relative, within, worst};
use dflash_trainer::drafter::anchors::{self, Blocks, Row, layout};
use dflash_trainer::drafter::{BlockMask, DFlashDrafter, load};
use dflash_trainer::loss::{HeadRows, Loss, cross_entropy};
use tch::{Device, IndexOp, Kind, Tensor};

const CASES: [&str; 4] = ["full_b8", "full_b16", "full_b4_bias", "row_without_anchor"];

struct Case {
    drafter: DFlashDrafter,
    inputs: Tensors,
    kind: Kind,
}

impl Case {
    fn load(name: &str, kind: Kind) -> Self {
        let folder = data("drafter").join(name);
        let drafter = load(&folder, kind, Device::Cpu).unwrap();
        drafter.require_gradients();
        Self { drafter, inputs: Tensors::read(folder.join("inputs.safetensors")), kind }
    }

    fn blocks(&self) -> Blocks {
        let rows = |name| Vec::<Vec<i64>>::try_from(self.inputs.get(name)).unwrap();
        let (ids, masks, anchors) = (rows("input_ids"), rows("loss_mask"), rows("anchors"));
        let keep = Vec::<Vec<bool>>::try_from(self.inputs.get("keep")).unwrap();
        let masks: Vec<Vec<bool>> = masks.iter().map(|m| m.iter().map(|&x| x > 0).collect()).collect();
        let drawn: Vec<Vec<usize>> = anchors
            .iter()
            .zip(&keep)
            .map(|(a, k)| a.iter().zip(k).filter(|(_, keep)| **keep).map(|(a, _)| *a as usize).collect())
            .collect();
        let rows: Vec<_> = ids.iter().zip(&masks).map(|(ids, loss_mask)| Row { ids, loss_mask }).collect();
        let c = &self.drafter.config;
        layout(&rows, &drawn, anchors[0].len(), c.block_size as usize, c.mask_token_id, Device::Cpu)
    }

    /// Outputs after the final norm [b, N·B, D].
    fn forward(&self, blocks: &Blocks, hidden: &Tensor) -> Tensor {
        let embedding = self.inputs.get("embed_tokens").to_kind(self.kind);
        let embedded = Tensor::embedding(&embedding, &blocks.ids, -1, false, false);
        let mask = BlockMask::new(
            &blocks.anchors,
            &blocks.keep,
            hidden.size()[1],
            self.drafter.config.block_size,
            Device::Cpu,
        );
        self.drafter.forward(&hidden.to_kind(self.kind), &embedded, &blocks.positions, &mask)
    }

    fn hidden(&self) -> Tensor {
        self.inputs.get("target_hidden").copy()
    }

    fn head(&self) -> Tensor {
        self.inputs.get("lm_head").to_kind(self.kind)
    }

    fn loss(&self, y: &Tensor, blocks: &Blocks, gamma: f64) -> Loss {
        cross_entropy(y, &blocks.slots, &HeadRows { weight: self.head(), row_of: None }, gamma)
    }
}

/// Logits of the kept blocks, [kept, B, V].
fn kept(logits: &Tensor, blocks: &Blocks) -> Tensor {
    let flat = logits.flatten(0, 1);
    flat.index_select(0, &blocks.keep.view([-1]).nonzero().squeeze_dim(1))
}

#[test]
fn logits_equal_those_of_specforge() {
    for (kind, tolerance) in [(Kind::Float, 5e-5), (Kind::BFloat16, 0.03)] {
        for name in CASES {
            let case = Case::load(name, kind);
            let blocks = case.blocks();
            let expected = Tensors::read(data("drafter").join(name).join("expected.safetensors")).get("logits");
            let y = case.forward(&blocks, &case.hidden()).detach();
            let logits = y.linear(&case.head(), None::<Tensor>).view(&expected.size()[..]);
            let (got, want) = (kept(&logits, &blocks), kept(&expected, &blocks));
            let error = if kind == Kind::Float { worst(&got, &want) } else { relative(&got, &want) };
            within(&format!("{name} in {kind:?}"), error, tolerance);
        }
    }
}

#[test]
fn labels_and_weights_are_those_of_specforge() {
    for name in CASES {
        let case = Case::load(name, Kind::Float);
        let slots = case.blocks().slots;
        let expected = Tensors::read(data("drafter").join(name).join("expected.safetensors"));
        let flat = |t: &str| expected.get(t).view([-1]);
        let supervised = flat("weights").nonzero().squeeze_dim(1);
        assert_eq!(slots.index, Vec::<i64>::try_from(supervised.shallow_clone()).unwrap(), "{name}");
        let labels = flat("labels").index_select(0, &supervised);
        assert_eq!(slots.label, Vec::<i64>::try_from(labels).unwrap(), "{name}");
    }
}

#[test]
fn loss_numerator_and_denominator_equal_specforges_for_every_gamma() {
    for name in CASES {
        let case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let y = case.forward(&blocks, &case.hidden());
        let expected = json(data("drafter").join(name).join("expected.json"));
        for (gamma, want) in expected["ce_by_gamma"].as_object().unwrap() {
            let loss = case.loss(&y, &blocks, gamma.parse().unwrap());
            let close = |what: &str, got: f64, want: &serde_json::Value| {
                let want = want.as_f64().unwrap();
                within(&format!("{name} {what}"), (got - want).abs(), 1e-5 * want.abs().max(1.0));
            };
            close("loss", loss.mean.double_value(&[]), &want["loss"]);
            close("numerator", loss.numerator.double_value(&[]), &want["numerator"]);
            close("denominator", loss.denominator, &want["decayed_denominator"]);
        }
        let correct = case.loss(&y, &blocks, 4.0).correct.sum(Kind::Int64).int64_value(&[]);
        let want: i64 = expected["metrics"]["correct"].as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).sum();
        assert_eq!(correct, want, "{name}");
    }
}

#[test]
fn gradients_of_every_tensor_equal_those_of_specforge() {
    for name in CASES {
        let case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let gamma = json(data("drafter").join(name).join("expected.json"))["gamma"].as_f64().unwrap();
        case.loss(&case.forward(&blocks, &case.hidden()), &blocks, gamma).mean.backward();
        let want = Tensors::read(data("drafter").join(name).join("grads_ce.safetensors"));
        assert_eq!(want.iter().count(), case.drafter.parameters().len());
        for (tensor, weight) in case.drafter.parameters() {
            within(&format!("{name} {tensor}"), worst(&weight.grad(), &want.get(tensor)), 5e-6);
        }
    }
}

/// The mask as a picture that anyone can check: a block sees the context before its anchor, and itself.
#[test]
fn a_block_sees_only_what_lies_before_its_anchor_and_itself() {
    let case = Case::load("full_b8", Kind::Float);
    let blocks = case.blocks();
    let base = case.forward(&blocks, &case.hidden()).detach();
    let block = case.drafter.config.block_size;
    let anchors = Vec::<Vec<i64>>::try_from(&blocks.anchors).unwrap();
    let keep = Vec::<Vec<bool>>::try_from(&blocks.keep).unwrap();
    for (row, (anchors, keep)) in anchors.iter().zip(&keep).enumerate() {
        for (j, (&a, _)) in anchors.iter().zip(keep).enumerate().filter(|(_, (_, keep))| **keep) {
            let rows = |y: &Tensor| y.i((row as i64, j as i64 * block..(j as i64 + 1) * block));
            let from = case.hidden();
            let _ = from.i((row as i64, a..)).fill_(7.0);
            let future = worst(&rows(&case.forward(&blocks, &from).detach()), &rows(&base));
            assert_eq!(future, 0.0, "block {j} of row {row} sees its anchor's state or what follows");
            if a > 0 {
                let before = case.hidden();
                let _ = before.i((row as i64, a - 1)).fill_(7.0);
                let past = worst(&rows(&case.forward(&blocks, &before).detach()), &rows(&base));
                assert!(past > 0.0, "block {j} of row {row} does not see the row before its anchor");
            }
        }
    }
}

#[test]
fn anchors_that_may_be_drawn_are_specforges() {
    for case in json(data("drafter/anchors.json")).as_array().unwrap() {
        let mask: Vec<bool> = crate::support::ids(&case["loss_mask"]).iter().map(|&m| m > 0).collect();
        let valid: Vec<i64> = anchors::valid(&mask).into_iter().map(|a| a as i64).collect();
        assert_eq!(valid, crate::support::ids(&case["valid"]["two_supervised"]));
    }
}

#[test]
fn a_drafter_survives_saving_and_loading() {
    let folder = data("decode/qwen3_b8");
    let target = dflash_trainer::target::TargetConfig::load(&folder.join("target")).unwrap();
    let drafter = load(&folder.join("drafter"), Kind::BFloat16, Device::Cpu).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let dir = copy.path().join("export");
    dflash_trainer::drafter::save(&drafter, &target, &dir).unwrap();
    let again = load(&dir, Kind::BFloat16, Device::Cpu).unwrap();
    assert_eq!(again.config, drafter.config);
    for ((name, a), (_, b)) in drafter.parameters().iter().zip(again.parameters()) {
        assert_eq!(worst(a, b), 0.0, "{name}");
    }
    let error = dflash_trainer::drafter::save(&drafter, &target, &dir).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "nothing is overwritten");
}
