//! One drafter case of the fixtures, run by the trainer.

use crate::support::{Tensors, data};
use dflash_trainer::config::{LayerType, MaskForm};
use dflash_trainer::drafter::{BlockMask, Blocks, DFlashDrafter, Layout, Row, layout, load};
use dflash_trainer::loss::{Goal, HeadRows, Loss, Teacher, evaluate};
use tch::{Device, Kind, Tensor};

pub const CASES: [&str; 8] = [
    "full_b8",
    "full_b16",
    "full_b4_bias",
    "mixed_sliding_b8",
    "all_sliding_b16",
    "packed_b8",
    "packed_sliding_b4",
    "row_without_anchor",
];

pub struct Case {
    pub drafter: DFlashDrafter,
    pub inputs: Tensors,
    pub kind: Kind,
    pub form: MaskForm,
    rows: Vec<OwnRow>,
    drawn: Vec<Vec<usize>>,
}

struct OwnRow {
    ids: Vec<i64>,
    mask: Vec<bool>,
    documents: Vec<i64>,
    positions: Vec<i64>,
}

impl Case {
    pub fn load(name: &str, kind: Kind) -> Self {
        let folder = data("drafter").join(name);
        let drafter = load(&folder, kind, Device::Cpu).unwrap();
        drafter.require_gradients();
        let inputs = Tensors::read(folder.join("inputs.safetensors"));
        let rows = |name| Vec::<Vec<i64>>::try_from(inputs.get(name)).unwrap();
        let keep = Vec::<Vec<bool>>::try_from(inputs.get("keep")).unwrap();
        let kept = |(anchors, keep): (&Vec<i64>, &Vec<bool>)| {
            anchors.iter().zip(keep).filter(|(_, keep)| **keep).map(|(a, _)| *a as usize).collect()
        };
        let drawn = rows("anchors").iter().zip(&keep).map(kept).collect();
        let columns = ["input_ids", "loss_mask", "document_ids", "position_ids"].map(rows);
        let own = (0..columns[0].len()).map(|i| OwnRow {
            ids: columns[0][i].clone(),
            mask: columns[1][i].iter().map(|&m| m > 0).collect(),
            documents: columns[2][i].clone(),
            positions: columns[3][i].clone(),
        });
        let rows = own.collect();
        Self { drafter, inputs, kind, form: MaskForm::Fused, rows, drawn }
    }

    pub fn rows(&self) -> Vec<Row<'_>> {
        // Where there is one document, it need not be named.
        let packed = self.rows.iter().any(|r| r.documents.iter().any(|&d| d != 0));
        let own = self.rows.iter().map(|r| Row {
            ids: &r.ids,
            loss_mask: &r.mask,
            documents: packed.then_some(&r.documents[..]),
            positions: packed.then_some(&r.positions[..]),
        });
        own.collect()
    }

    pub fn blocks(&self) -> Blocks {
        let c = &self.drafter.config;
        let count = self.inputs.get("anchors").size()[1] as usize;
        let block = c.block_size as usize;
        layout(&self.rows(), &self.drawn, &Layout { count, block, mask_id: c.mask_token_id, device: Device::Cpu })
    }

    pub fn mask(&self, blocks: &Blocks) -> BlockMask {
        let rows = self.inputs.get("target_hidden").size()[1];
        BlockMask::new(blocks, rows, &self.drafter.config, self.form, self.kind)
    }

    pub fn dense(&self, blocks: &Blocks, layer: LayerType) -> Tensor {
        BlockMask::dense(blocks, self.inputs.get("target_hidden").size()[1], &self.drafter.config, layer)
    }

    pub fn embedded(&self, blocks: &Blocks) -> Tensor {
        Tensor::embedding(&self.inputs.get("embed_tokens").to_kind(self.kind), &blocks.ids, -1, false, false)
    }

    /// Outputs after the final norm [b, N·B, D].
    pub fn forward(&self, blocks: &Blocks, hidden: &Tensor) -> Tensor {
        self.drafter.forward(&hidden.to_kind(self.kind), &self.embedded(blocks), blocks, &self.mask(blocks))
    }

    pub fn hidden(&self) -> Tensor {
        self.inputs.get("target_hidden").copy()
    }

    pub fn head(&self) -> HeadRows {
        HeadRows { weight: self.inputs.get("lm_head").to_kind(self.kind), row_of: None }
    }

    pub fn teacher(&self) -> Teacher {
        Teacher::Logits(self.inputs.get("target_logits"))
    }

    pub fn loss(&self, y: &Tensor, blocks: &Blocks, goal: &Goal) -> Loss {
        let texts = self.rows().iter().map(Row::texts).sum();
        evaluate(y, &blocks.slots, &self.head(), Some(&self.teacher()), goal, texts)
    }

    /// Logits of the kept blocks, [kept, B, V].
    pub fn kept_logits(&self, y: &Tensor, blocks: &Blocks) -> Tensor {
        let logits = y.detach().linear(&self.head().weight, None::<Tensor>);
        let shape = [-1, self.drafter.config.block_size, logits.size()[2]];
        kept(&logits.view(shape), blocks)
    }
}

/// The kept blocks of [b·N, ..].
pub fn kept(blocks_first: &Tensor, blocks: &Blocks) -> Tensor {
    blocks_first.index_select(0, &blocks.keep.view([-1]).nonzero().squeeze_dim(1))
}
