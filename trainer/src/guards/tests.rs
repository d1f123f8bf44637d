//! Each guard with the fault that it is for.

use super::*;
use crate::config::{LayerType, MaskForm, WindowRule};
use crate::drafter::{Blocks, DrafterConfig, Init, Sliding};
use std::path::Path;
use tch::{Device, Kind};

/// A row of three documents and a hole in the mask.
struct Bench {
    target: Target,
    drafter: DFlashDrafter,
    ids: Vec<i64>,
    mask: Vec<bool>,
    documents: Vec<i64>,
}

const ANCHORS: [usize; 3] = [3, 17, 31];

impl Bench {
    fn new() -> Self {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
        let target = Target::load(&data.join("targets/qwen3"), Kind::Float, Device::Cpu).unwrap();
        let mut settings =
            crate::config::Drafter { layers: 2, block_size: 4, mask_token_id: 200, ..Default::default() };
        settings.target_layer_ids = vec![0, 2];
        let config = DrafterConfig::for_target(&target.config, &settings);
        let drafter = DFlashDrafter::fresh(&config, Init { seed: 3, final_norm: 1.0 }, Kind::Float, Device::Cpu);
        let documents = (0..40).map(|i| [0, 1, 2][(i / 14) as usize]).collect();
        let ids = (0..40).map(|i| (i * 7 + 3) % 90).collect();
        Self { target, drafter, ids, mask: vec![true; 40], documents }
    }

    fn row(&self) -> Row<'_> {
        Row { ids: &self.ids, loss_mask: &self.mask, documents: Some(&self.documents), positions: None }
    }

    fn blocks(&self, row: Row<'_>, anchors: &[usize]) -> Blocks {
        let how = Layout { count: anchors.len(), block: 4, mask_id: 200, device: Device::Cpu };
        layout(&[row], &[anchors.to_vec()], &how)
    }

    fn read(&self, ids: &[i64], documents: Option<&[i64]>) -> Tensor {
        let row = Row { ids, documents, ..self.row() };
        let input = Tensor::from_slice(ids).unsqueeze(0);
        self.target.drafter_features(&input, packed(&[row], ids.len(), Device::Cpu).as_ref(), &[0, 2], false)
    }

    /// The drafter over blocks at `ANCHORS`, under the mask of `seen`.
    fn draft(&self, taps: &Tensor, seen: &Blocks, config: &DrafterConfig) -> Tensor {
        let blocks = self.blocks(self.row(), &ANCHORS);
        let embedded = Tensor::embedding(&self.target.embedding, &blocks.ids, -1, false, false);
        let mask = BlockMask::new(seen, 40, config, MaskForm::Fused, Kind::Float);
        self.drafter.forward(taps, &embedded, &blocks, &mask)
    }

    /// What each guard says of a target and a drafter as given.
    fn verdicts(&self, read: &dyn Fn(&[i64]) -> Tensor, draft: &dyn Fn(&Tensor) -> Tensor) -> Vec<&'static str> {
        let row = self.row();
        let probe = Probe { row, anchors: &ANCHORS, block: 4, vocabulary: 90, read, draft };
        let _guard = tch::no_grad_guard();
        let guards = [future, anchor_state, context, documents];
        guards.iter().filter_map(|guard| guard(&probe).err()).map(|fault| fault.guard).collect()
    }
}

#[test]
fn all_guards_pass_what_is_right() {
    let bench = Bench::new();
    let texts = [bench.row(), Row { documents: None, ..bench.row() }];
    for texts in [&texts[..1], &texts[1..]] {
        let subject =
            Subject { target: &bench.target, drafter: &bench.drafter, rule: AnchorRule::TwoSupervised, texts };
        let verdicts = all(&subject);
        assert_eq!(verdicts.len(), 9);
        for (name, verdict) in verdicts {
            assert_eq!(verdict, Ok(()), "{name}");
        }
    }
}

#[test]
fn a_mask_that_shows_the_anchor_is_seen() {
    let bench = Bench::new();
    let read = |ids: &[i64]| bench.read(ids, Some(&bench.documents));
    let later = bench.blocks(bench.row(), &ANCHORS.map(|a| a + 1));
    let found = bench.verdicts(&read, &|taps| bench.draft(taps, &later, &bench.drafter.config));
    assert_eq!(found, ["anchor_state"], "one row too many");
    let later = bench.blocks(bench.row(), &ANCHORS.map(|a| a + 3));
    let found = bench.verdicts(&read, &|taps| bench.draft(taps, &later, &bench.drafter.config));
    assert_eq!(found, ["future", "anchor_state"]);
}

#[test]
fn a_mask_that_hides_the_row_before_the_anchor_is_seen() {
    let bench = Bench::new();
    let earlier = bench.blocks(bench.row(), &ANCHORS.map(|a| a - 1));
    let read = |ids: &[i64]| bench.read(ids, Some(&bench.documents));
    let found = bench.verdicts(&read, &|taps| bench.draft(taps, &earlier, &bench.drafter.config));
    assert_eq!(found, ["context"]);
}

#[test]
fn documents_that_leak_are_seen_in_target_and_drafter() {
    let bench = Bench::new();
    let whole = Row { documents: None, ..bench.row() };
    let (right, leaking) = (bench.blocks(bench.row(), &ANCHORS), bench.blocks(whole, &ANCHORS));
    let config = &bench.drafter.config;
    let packed = |ids: &[i64]| bench.read(ids, Some(&bench.documents));
    assert_eq!(
        bench.verdicts(&packed, &|taps| bench.draft(taps, &leaking, config)),
        ["documents"],
        "the drafter leaks"
    );
    let unpacked = |ids: &[i64]| bench.read(ids, None);
    assert_eq!(bench.verdicts(&unpacked, &|taps| bench.draft(taps, &right, config)), ["documents"], "the target leaks");
}

#[test]
fn a_target_that_looks_ahead_is_seen() {
    let bench = Bench::new();
    // Each row holds the next one's state: taps off by one in time.
    let ahead = |ids: &[i64]| bench.read(ids, Some(&bench.documents)).roll([-1], [1]);
    let right = bench.blocks(bench.row(), &ANCHORS);
    // Behind it, the token after the anchor is two rows away.
    let far = |ids: &[i64]| ahead(ids).roll([-1], [1]);
    let draft = |taps: &Tensor| bench.draft(taps, &right, &bench.drafter.config);
    assert!(bench.verdicts(&far, &draft).contains(&"future"));
}

#[test]
fn a_window_does_not_hide_the_row_before_the_anchor() {
    let mut bench = Bench::new();
    bench.drafter.config.layer_types = vec![LayerType::SlidingAttention; 2];
    bench.drafter.config.sliding = Some(Sliding { window: 3, rule: WindowRule::Slot, causal: true });
    let right = bench.blocks(bench.row(), &ANCHORS);
    let read = |ids: &[i64]| bench.read(ids, Some(&bench.documents));
    assert!(bench.verdicts(&read, &|taps| bench.draft(taps, &right, &bench.drafter.config)).is_empty());
}

#[test]
fn taps_off_by_one_are_seen() {
    let bench = Bench::new();
    let input = Tensor::from_slice(&bench.ids).unsqueeze(0);
    let cut = |layer: usize| bench.target.features(&input, &[layer], false).last;
    let shifted = bench.target.features(&input, &[1, 3], false).taps;
    let found = model::compare(&[0, 2], &shifted, cut).unwrap_err();
    assert_eq!(found.to_string(), "guard `taps`: tap 0 is not the output of layer 0");
    assert_eq!(taps(&bench.target, &bench.ids, &[0, 2]), Ok(()));
}

fn name(verdict: Verdict) -> &'static str {
    verdict.unwrap_err().guard
}

#[test]
fn tap_ids_beyond_the_model_are_seen() {
    assert_eq!(tap_ids(&[1, 6, 11], 24), Ok(()));
    assert_eq!(tap_ids(&[1, 2, 2, 2, 3], 6), Ok(()), "what the formula gives for a shallow target");
    for ids in [&[][..], &[1, 24], &[1, 23], &[6, 1]] {
        assert_eq!(name(tap_ids(ids, 24)), "tap_ids", "{ids:?}");
    }
}

#[test]
fn a_mask_token_that_texts_contain_is_seen() {
    assert_eq!(mask_id(5, 100, [1, 2, 3].into_iter()), Ok(()));
    assert_eq!(name(mask_id(3, 100, [1, 2, 3].into_iter())), "mask_id");
    assert_eq!(name(mask_id(100, 100, [1].into_iter())), "mask_id");
    assert_eq!(name(mask_id(-1, 100, [1].into_iter())), "mask_id");
}

#[test]
fn a_head_that_is_not_the_targets_is_seen() {
    let table = |seed: i64| (Tensor::arange(40, (Kind::Float, Device::Cpu)).view([10, 4]) + seed).sin();
    assert_eq!(head(true, &table(1), &table(1)), Ok(()));
    assert_eq!(head(false, &table(1), &table(2)), Ok(()));
    assert_eq!(name(head(true, &table(1), &table(2))), "head", "a random head beside a tied embedding");
    assert_eq!(name(head(false, &table(1), &table(2).zeros_like())), "head");
    assert_eq!(name(head(false, &table(1), &(table(2) * f64::NAN))), "head");
    assert_eq!(name(head(false, &table(1), &table(2).narrow(0, 0, 9))), "head");
}

#[test]
fn data_without_room_for_a_block_is_seen() {
    let bench = Bench::new();
    let row = bench.row();
    let check = |texts: &[Row<'_>], block, positions| data(texts, AnchorRule::WholeBlock, block, positions);
    assert_eq!(check(&[row], 4, 100), Ok(()));
    assert_eq!(name(check(&[row], 50, 100)), "data", "blocks longer than the texts");
    assert_eq!(check(&[row], 4, 14), Ok(()), "its documents are shorter than the row");
    let whole = Row { documents: None, ..row };
    assert_eq!(name(check(&[whole], 4, 39)), "data", "texts longer than the positions");
    let silent = Row { loss_mask: &[false; 40], ..row };
    assert_eq!(name(check(&[silent], 4, 100)), "data", "nothing is supervised");
    assert_eq!(name(check(&[], 4, 100)), "data");
}
