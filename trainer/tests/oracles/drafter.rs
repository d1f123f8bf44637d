//! What a block sees, against a mask made by brute force, over random packings, windows and anchors.

use crate::case::{CASES, Case};
use crate::support::{data, json, random, within, worst};
use dflash_trainer::config::{LayerType, MaskForm, WindowRule};
use dflash_trainer::drafter::{
    BlockMask, Blocks, DFlashDrafter, DrafterConfig, Init, Layout, Row, Sliding, anchors, layout, load, write_into,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tch::{Device, IndexOp, Kind, Tensor};

/// Rows, their documents, and the anchors drawn in them.
struct Batch {
    ids: Vec<Vec<i64>>,
    masks: Vec<Vec<bool>>,
    documents: Vec<Vec<i64>>,
    drawn: Vec<Vec<usize>>,
    count: usize,
}

impl Batch {
    /// Rows of one length: documents of any length behind each other, now and then padding at the end.
    fn random(rng: &mut StdRng, rows: usize, length: usize, count: usize) -> Self {
        let mut batch = Self { ids: vec![], masks: vec![], documents: vec![], drawn: vec![], count };
        for _ in 0..rows {
            let mut documents = Vec::new();
            while documents.len() < length {
                let id = documents.last().map_or(0, |d| d + 1);
                documents.extend(std::iter::repeat_n(id, rng.random_range(1..length)));
            }
            documents.truncate(length);
            let padding = rng.random_range(0..length / 4);
            documents[length - padding..].fill(-1);
            let mask: Vec<bool> = documents.iter().map(|&d| d >= 0 && rng.random_bool(0.8)).collect();
            // Anchor 0 whenever it may be: it sees no context at all.
            let valid: Vec<usize> = (0..length).filter(|&a| documents[a] >= 0).collect();
            let mut drawn = anchors::draw(&valid, rng.random_range(0..=count), rng);
            if rng.random_bool(0.5) && drawn.first().is_some_and(|&a| a > 0) {
                drawn[0] = 0;
            }
            batch.ids.push((0..length as i64).collect());
            batch.masks.push(mask);
            batch.documents.push(documents);
            batch.drawn.push(drawn);
        }
        batch
    }

    fn blocks(&self, block: usize) -> Blocks {
        let rows: Vec<_> = (0..self.ids.len())
            .map(|i| Row {
                ids: &self.ids[i],
                loss_mask: &self.masks[i],
                documents: Some(&self.documents[i]),
                positions: None,
            })
            .collect();
        layout(&rows, &self.drawn, &Layout { count: self.count, block, mask_id: 9, device: Device::Cpu })
    }

    /// The rules, one query and one key at a time: [b, N·B, S + N·B].
    fn brute(&self, block: usize, sliding: Option<Sliding>) -> Vec<bool> {
        let (length, n) = (self.ids[0].len(), self.count);
        let mut mask = Vec::new();
        for (documents, drawn) in self.documents.iter().zip(&self.drawn) {
            for query in 0..n * block {
                let (j, k) = (query / block, query % block);
                let anchor = drawn.get(j).copied();
                mask.extend((0..length).map(|c| {
                    anchor.is_some_and(|a| {
                        let near = match sliding {
                            None => true,
                            Some(Sliding { window, rule: WindowRule::Slot, .. }) => {
                                ((a + k) as i64 - c as i64) < window
                            }
                            Some(Sliding { window, rule: WindowRule::Anchor, .. }) => c as i64 >= a as i64 - window,
                        };
                        c < a && documents[c] == documents[a] && near
                    })
                }));
                mask.extend(
                    (0..n * block)
                        .map(|key| key / block == j && !(sliding.is_some_and(|s| s.causal) && key % block > k)),
                );
            }
        }
        mask
    }
}

fn config(block: i64, sliding: Option<Sliding>) -> DrafterConfig {
    let mut config = DrafterConfig::load(&data("drafter/full_b8")).unwrap();
    config.block_size = block;
    config.sliding = sliding;
    let second = if sliding.is_some() { LayerType::SlidingAttention } else { LayerType::FullAttention };
    config.layer_types = vec![LayerType::FullAttention, second];
    config
}

fn any_sliding(rng: &mut StdRng) -> Option<Sliding> {
    rng.random_bool(0.7).then(|| Sliding {
        window: rng.random_range(1..40),
        rule: if rng.random_bool(0.5) { WindowRule::Slot } else { WindowRule::Anchor },
        causal: rng.random_bool(0.5),
    })
}

#[test]
fn masks_are_those_of_brute_force() {
    let mut rng = StdRng::seed_from_u64(5);
    for round in 0..60 {
        let block = rng.random_range(2..9);
        let batch = Batch::random(&mut rng, 2, 40, 5);
        let sliding = any_sliding(&mut rng);
        let blocks = batch.blocks(block);
        let config = config(block as i64, sliding);
        for (layer, rule) in [(LayerType::FullAttention, None), (LayerType::SlidingAttention, sliding)] {
            let got = BlockMask::dense(&blocks, 40, &config, layer);
            assert_eq!(
                Vec::<bool>::try_from(got.view([-1])).unwrap(),
                batch.brute(block, rule),
                "round {round}, {rule:?}"
            );
        }
    }
}

/// Enough blocks for several groups, whose parts of the context are all different.
#[test]
fn groups_see_what_one_dense_mask_shows() {
    let mut rng = StdRng::seed_from_u64(6);
    for round in 0..6 {
        let block = [2, 3, 4][round % 3];
        let (length, count) = (300, 150);
        let batch = Batch::random(&mut rng, 2, length, count);
        let config = config(block as i64, any_sliding(&mut rng));
        let init = Init { seed: round as i64, final_norm: 1.0 };
        let drafter = DFlashDrafter::fresh(&config, init, Kind::Float, Device::Cpu);
        drafter.require_gradients();
        let blocks = batch.blocks(block);
        let random = |width: i64, rows: usize| random(&[2, rows as i64, width], (round + rows) as u64);
        let (taps, embedded) = (random(config.feature_width(), length), random(config.hidden_size, count * block));
        let aim = random(config.hidden_size, count * block);
        let run = |form| {
            let mask = BlockMask::new(&blocks, length as i64, &config, form, Kind::Float);
            let y = drafter.forward(&taps, &embedded, &blocks, &mask);
            (&y * &aim).sum(Kind::Float).backward();
            let gradients: Vec<Tensor> = drafter.parameters().iter().map(|(_, w)| w.grad().copy()).collect();
            drafter.parameters().iter().for_each(|(_, w)| w.shallow_clone().zero_grad());
            (y.detach(), gradients)
        };
        let (fused, dense) = (run(MaskForm::Fused), run(MaskForm::Dense));
        within(&format!("round {round}"), worst(&fused.0, &dense.0), 2e-5);
        for ((fused, dense), (name, _)) in fused.1.iter().zip(&dense.1).zip(drafter.parameters()) {
            let size = dense.abs().max().double_value(&[]).max(1.0);
            within(name, worst(fused, dense) / size, 2e-5);
        }
    }
}

/// The mask as a picture that anyone can check: a block sees the context before its anchor, and itself.
#[test]
fn a_block_sees_only_what_lies_before_its_anchor_and_itself() {
    for name in CASES {
        let case = Case::load(name, Kind::Float);
        let blocks = case.blocks();
        let base = case.forward(&blocks, &case.hidden()).detach();
        let block = case.drafter.config.block_size;
        let anchors = Vec::<Vec<i64>>::try_from(&blocks.anchors).unwrap();
        let keep = Vec::<Vec<bool>>::try_from(&blocks.keep).unwrap();
        let rows = case.rows();
        for (row, (anchors, keep)) in anchors.iter().zip(&keep).enumerate() {
            for (j, (&a, _)) in anchors.iter().zip(keep).enumerate().filter(|(_, (_, keep))| **keep) {
                let own = |y: &Tensor| y.i((row as i64, j as i64 * block..(j as i64 + 1) * block));
                let from = case.hidden();
                let _ = from.i((row as i64, a..)).fill_(7.0);
                let future = worst(&own(&case.forward(&blocks, &from).detach()), &own(&base));
                assert_eq!(future, 0.0, "{name}: block {j} of row {row} sees its anchor's state or what follows");
                let document = |at: i64| rows[row].documents.map_or(0, |d| d[at as usize]);
                if a > 0 && document(a - 1) == document(a) {
                    let before = case.hidden();
                    let _ = before.i((row as i64, a - 1)).fill_(7.0);
                    let past = worst(&own(&case.forward(&blocks, &before).detach()), &own(&base));
                    assert!(past > 0.0, "{name}: block {j} of row {row} does not see the row before its anchor");
                }
            }
        }
    }
}

/// At inference a block stands right behind the context; sliding layers must see what they saw in training.
#[test]
fn a_block_behind_the_context_is_the_block_of_the_training() {
    for name in ["full_b8", "mixed_sliding_b8", "all_sliding_b16"] {
        let case = Case::load(name, Kind::Float);
        let c = &case.drafter.config;
        let ids: Vec<i64> = (0..30).collect();
        let row = Row { ids: &ids, loss_mask: &[true; 30], ..Row::default() };
        let block = c.block_size as usize;
        let how = Layout { count: 1, block, mask_id: c.mask_token_id, device: Device::Cpu };
        let blocks = layout(&[row], &[vec![29]], &how);
        let taps = case.hidden().i((0..1, ..30));
        let embedded = case.embedded(&blocks);
        let mask = BlockMask::new(&blocks, 30, c, MaskForm::Dense, Kind::Float);
        let want = case.drafter.forward(&taps, &embedded, &blocks, &mask).detach();
        let mut cache = dflash_trainer::drafter::ContextCache::new(&case.drafter, 30, Kind::Float, Device::Cpu);
        tch::no_grad(|| {
            cache.extend(&case.drafter, &taps.i((.., ..11)));
            cache.extend(&case.drafter, &taps.i((.., 11..29)));
            within(name, worst(&cache.block(&case.drafter, &embedded), &want), 5e-5);
        });
    }
}

#[test]
fn a_drafter_survives_saving_and_loading() {
    let folder = data("decode/qwen3_b8");
    let target = dflash_trainer::target::TargetConfig::load(&folder.join("target")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for (name, dir) in [("a", folder.join("drafter")), ("b", data("drafter/mixed_sliding_b8"))] {
        let mut drafter = load(&dir, Kind::BFloat16, Device::Cpu).unwrap();
        if let Some(sliding) = &mut drafter.config.sliding {
            *sliding = Sliding { window: 5, rule: WindowRule::Anchor, causal: false };
        }
        let dir = copy.path().join(name);
        write_into(&drafter, &target, &dir).unwrap();
        let again = load(&dir, Kind::BFloat16, Device::Cpu).unwrap();
        assert_eq!(again.config, drafter.config);
        let written = json(dir.join("config.json"));
        let causal = &written["dflash_config"]["causal"];
        assert_eq!(*causal == false, drafter.config.sliding.is_some(), "as serving engines read it: {causal}");
        for ((name, a), (_, b)) in drafter.parameters().iter().zip(again.parameters()) {
            assert_eq!(worst(a, b), 0.0, "{name}");
        }
    }
}
