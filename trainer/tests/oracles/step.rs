//! The step as the pipeline makes it: what its switches must not change, and what they must.

use crate::case::Case;
use crate::support::{data, random, within, worst};
use dflash_trainer::config::{MaskForm, NoiseSchedule, NormReading, Objective, Reduction, Train};
use dflash_trainer::drafter::{DFlashDrafter, DrafterConfig, Init, Row};
use dflash_trainer::loss::{Goal, Teacher, evaluate};
use dflash_trainer::pipeline::DrafterStep;
use tch::{Device, IndexOp, Kind, Tensor};

const LENGTH: usize = 60;

fn settings() -> Train {
    Train { steps: 20, anchors: 12, learning_rate: 1e-2, warmup: 0.0, ..Train::default() }
}

fn learner(settings: &Train) -> DrafterStep {
    let config = DrafterConfig::load(&data("drafter/full_b8")).unwrap();
    let drafter = DFlashDrafter::fresh(&config, Init { seed: 1, final_norm: 1.0 }, Kind::Float, Device::Cpu);
    let table = |seed| random(&[config.vocab_size, config.hidden_size], seed);
    DrafterStep::new(settings, drafter, (table(1), table(2)), std::iter::empty(), 7)
}

fn taps(step: i64, width: i64) -> Tensor {
    random(&[2, LENGTH as i64, width], 100 + step as u64)
}

fn ids(row: i64) -> Vec<i64> {
    (0..LENGTH as i64).map(|i| (i * 31 + row * 17) % 120).collect()
}

/// Weights after some steps.
fn train(learner: &mut DrafterStep, steps: usize, width: i64) -> Vec<Tensor> {
    let (a, b) = (ids(0), ids(1));
    let mask: Vec<bool> = (0..LENGTH).map(|i| i > 8 && i % 11 != 0).collect();
    for step in 0..steps {
        let rows = [&a, &b].map(|ids| Row { ids, loss_mask: &mask, ..Row::default() });
        let _ = learner.run(&taps(step as i64, width), &rows, step);
    }
    learner.drafter.parameters().iter().map(|(_, w)| w.detach().copy()).collect()
}

fn width() -> i64 {
    DrafterConfig::load(&data("drafter/full_b8")).unwrap().feature_width()
}

#[test]
fn switches_of_memory_and_speed_do_not_change_what_is_learnt() {
    let base = train(&mut learner(&settings()), 3, width());
    let variants: [(&str, Train); 4] = [
        ("checkpointing", Train { checkpointing: true, ..settings() }),
        ("chunks of 5 blocks", Train { loss_chunk_blocks: 5, ..settings() }),
        ("as many blocks as there are", Train { fixed_anchors: false, anchors: 500, ..settings() }),
        ("norm read each step", Train { norm_reading: NormReading::EachStep, ..settings() }),
    ];
    for (name, variant) in variants {
        let base = match variant.anchors {
            500 => train(&mut learner(&Train { anchors: 500, ..settings() }), 3, width()),
            _ => base.iter().map(Tensor::copy).collect(),
        };
        let got = train(&mut learner(&variant), 3, width());
        for (a, b) in base.iter().zip(&got) {
            within(name, worst(a, b), 2e-3 * 1e-2 * 3.0);
        }
    }
    let mut dense = learner(&settings());
    dense.drafter.mask = MaskForm::Dense;
    let dense = train(&mut dense, 3, width());
    for (a, b) in base.iter().zip(&dense) {
        within("dense", worst(a, b), 2e-3 * 1e-2 * 3.0);
    }
}

#[test]
fn a_step_is_a_function_of_its_seed_and_number() {
    let noisy = Train { noise: NoiseSchedule::Cosine, noise_start: 0.3, ..settings() };
    let (once, again) = (train(&mut learner(&noisy), 3, width()), train(&mut learner(&noisy), 3, width()));
    assert!(once.iter().zip(&again).all(|(a, b)| a.equal(b)));
    let quiet = train(&mut learner(&settings()), 3, width());
    assert!(once.iter().zip(&quiet).any(|(a, b)| !a.equal(b)), "noise changes what is learnt");
}

/// Two batches of one sequence are one step over both, whose gradient is the mean of theirs.
#[test]
fn accumulation_follows_the_mean_of_its_batches() {
    let settings = Train { accumulate: 2, clip: 0.0, ..settings() };
    let mut learner = learner(&settings);
    let (a, b) = (ids(0), ids(1));
    let mask = [true; LENGTH];
    let both = taps(0, width());
    let mut apart = Vec::new();
    for (i, ids) in [&a, &b].into_iter().enumerate() {
        let mut own = self::learner(&Train { accumulate: 1, clip: 0.0, learning_rate: 0.0, ..settings.clone() });
        let row = Row { ids, loss_mask: &mask, ..Row::default() };
        let share = dflash_trainer::pipeline::Share { step: 0, first_row: i as u64 };
        let (loss, _) = own.backward(&both.i(i as i64..i as i64 + 1), &[row], share);
        let gradients: Vec<Tensor> = own.drafter.parameters().iter().map(|(_, w)| w.grad().copy()).collect();
        apart.push((loss.mean.double_value(&[]), gradients));
    }
    for (i, ids) in [&a, &b].into_iter().enumerate() {
        let row = Row { ids, loss_mask: &mask, ..Row::default() };
        let share = dflash_trainer::pipeline::Share { step: 0, first_row: i as u64 };
        let (loss, _) = learner.backward(&both.i(i as i64..i as i64 + 1), &[row], share);
        within("loss", (loss.mean.double_value(&[]) - apart[i].0).abs(), 1e-6);
    }
    for (i, (name, w)) in learner.drafter.parameters().iter().enumerate() {
        let mean = (&apart[0].1[i] + &apart[1].1[i]) / 2.0;
        within(name, worst(&w.grad(), &mean), 1e-6);
    }
    let run = |batch: usize, learner: &mut DrafterStep| {
        let row = Row { ids: &a, loss_mask: &mask, ..Row::default() };
        learner.run(&both.i(0..1), &[row], batch).update.is_some()
    };
    let mut fresh = self::learner(&settings);
    assert_eq!([0, 1, 2, 3].map(|batch| run(batch, &mut fresh)), [false, true, false, true]);
}

/// Another state of the target changes what it teaches, and nothing of what the drafter sees.
#[test]
fn kl_reads_the_targets_last_states_behind_the_taps() {
    let settings = Train { loss: Objective::Kl, ..settings() };
    let hidden = learner(&settings).drafter.config.hidden_size;
    let a = ids(0);
    let run = |last: &Tensor| {
        let row = Row { ids: &a, loss_mask: &[true; LENGTH], ..Row::default() };
        let wide = Tensor::cat(&[taps(0, width()).i(0..1), last.shallow_clone()], -1);
        learner(&settings).run(&wide, &[row], 0).loss
    };
    let last = random(&[1, LENGTH as i64, hidden], 3);
    let (one, other) = (run(&last), run(&(&last * -1.0)));
    assert!(one.mean.double_value(&[]) > 0.0 && one.figures.expected.is_some());
    assert_ne!(one.mean.double_value(&[]), other.mean.double_value(&[]));
    assert!(one.figures.entropy.equal(&other.figures.entropy), "the drafter says the same");
}

/// What the parity of `kl` shows of logits holds of the states that they are made of.
#[test]
fn a_teachers_states_teach_what_its_logits_do() {
    let case = Case::load("full_b8", Kind::Float);
    let blocks = case.blocks();
    let y = case.forward(&blocks, &case.hidden());
    let sizes = case.hidden().size();
    let states = random(&[sizes[0], sizes[1], case.drafter.config.hidden_size], 4);
    let logits = states.linear(&case.head().weight, None::<Tensor>);
    let goal = Goal { objective: Objective::Kl, ..Goal::cross_entropy(4.0, 8) };
    let loss = |teacher: Teacher| evaluate(&y, &blocks.slots, &case.head(), Some(&teacher), &goal, 2).mean;
    let (by_states, by_logits) = (loss(Teacher::Hidden(states)), loss(Teacher::Logits(logits)));
    within("loss", worst(&by_states, &by_logits), 1e-5);
}

/// Nothing is supervised: nothing is learnt, and nothing is wrong.
#[test]
fn a_batch_without_an_anchor_moves_nothing() {
    for (loss, reduction) in [
        (Objective::CrossEntropy, Reduction::Auto),
        (Objective::Dpace, Reduction::WeightedMean),
        (Objective::Dpace, Reduction::Auto),
    ] {
        let mut learner = learner(&Train { loss, reduction, ..settings() });
        let before: Vec<Tensor> = learner.drafter.parameters().iter().map(|(_, w)| w.detach().copy()).collect();
        let a = ids(0);
        let row = Row { ids: &a, loss_mask: &[false; LENGTH], ..Row::default() };
        let stepped = learner.run(&taps(0, width()).i(0..1), &[row], 0);
        assert_eq!(stepped.loss.mean.double_value(&[]), 0.0);
        assert_eq!(stepped.update.unwrap().finite.int64_value(&[]), 1);
        for (before, (name, after)) in before.iter().zip(learner.drafter.parameters()) {
            assert!(before.equal(after), "{name}");
        }
    }
}

/// Hidden states that are no numbers, as a broken target would send them.
#[test]
fn a_step_whose_loss_is_no_number_changes_nothing_and_is_counted() {
    let mut learner = learner(&settings());
    let base = train(&mut learner, 2, width());
    let (a, mask) = (ids(0), [true; LENGTH]);
    let bad = taps(9, width()).i(0..1);
    let _ = bad.i((0, 3, 5)).fill_(f64::NAN);
    for step in 2..5 {
        let row = Row { ids: &a, loss_mask: &mask, ..Row::default() };
        let update = learner.run(&bad, &[row], step).update.unwrap();
        assert_eq!(update.finite.int64_value(&[]), 0);
    }
    for (before, (name, after)) in base.iter().zip(learner.drafter.parameters()) {
        assert!(before.equal(after), "{name}");
    }
    let row = Row { ids: &a, loss_mask: &mask, ..Row::default() };
    let update = learner.run(&taps(5, width()).i(0..1), &[row], 5).update.unwrap();
    assert_eq!(update.finite.int64_value(&[]), 1);
    assert!(base.iter().zip(learner.drafter.parameters()).any(|(a, (_, b))| !a.equal(b)), "and the next one learns");
}
