//! A drafter's directory: one of z-lab's layout read, run, written again and read again.

use super::Report;
use crate::support::{Tensors, data, json, relative, worst};
use dflash_trainer::drafter::{BlockMask, DFlashDrafter, load, write_into};
use dflash_trainer::target::TargetConfig;
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// The drafter's output on the recorded inputs, whose context has no mask.
fn forward(drafter: &DFlashDrafter, inputs: &Tensors, kind: Kind) -> Tensor {
    let (taps, block) = (inputs.get("target_hidden").to_kind(kind), inputs.get("block_embedding").to_kind(kind));
    let positions = inputs.get("position_ids");
    let (rows, size) = (taps.size()[1], block.size()[1]);
    let ctx = drafter.context(&taps);
    let mask = BlockMask::behind(rows, size, &drafter.config, Device::Cpu);
    drafter
        .blocks(&block, &positions.narrow(1, rows, size), size, &mask, |layer| {
            drafter.context_kv(layer, &ctx, &positions.narrow(1, 0, rows))
        })
        .detach()
}

/// Name, dtype and shape of every tensor of a file.
fn tensors(path: &Path) -> BTreeMap<String, (String, Vec<i64>)> {
    let name = |kind| match kind {
        Kind::BFloat16 => "bfloat16".to_owned(),
        other => format!("{other:?}"),
    };
    Tensors::read(path.to_owned()).iter().map(|(n, t)| (n.clone(), (name(t.kind()), t.size()))).collect()
}

#[test]
fn parity_export() {
    let mut report = Report::new("export");
    let expected = json(data("export/expected.json"));
    let inputs = Tensors::read(data("export/forward.safetensors"));
    let want = inputs.get("output");
    let original = load(&data("export/drafter"), Kind::BFloat16, Device::Cpu).unwrap();
    let target = TargetConfig::load(&data("targets/qwen3")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("drafter");
    write_into(&original, &target, &again).unwrap();
    for (name, dir) in [("published", data("export/drafter")), ("saved again", again.clone())] {
        let mut line = report.line(name);
        for (kind, tolerance) in [(Kind::Float, 5e-5), (Kind::BFloat16, 0.03)] {
            let drafter = load(&dir, kind, Device::Cpu).unwrap();
            let got = forward(&drafter, &inputs, kind);
            let error = if kind == Kind::Float { worst(&got, &want) } else { relative(&got, &want) };
            line.check(&format!("{kind:?}"), error, tolerance);
        }
        let found = tensors(&dir.join("model.safetensors"));
        let named: BTreeMap<_, (String, Vec<i64>)> = serde_json::from_value(expected["tensors"].clone()).unwrap();
        line.same("tensors", found, named);
        let config = json(dir.join("config.json"));
        let missing = expected["config_keys"].as_array().unwrap().iter().filter(|key| {
            // Who wrote it, and not for us to claim.
            *key != "transformers_version" && config.get(key.as_str().unwrap()).is_none()
        });
        line.check("keys missing", f64::from(missing.count() as u32), 0.0);
        line.same("config", load(&dir, Kind::Float, Device::Cpu).unwrap().config, original.config.clone());
    }
    report.finish();
}
