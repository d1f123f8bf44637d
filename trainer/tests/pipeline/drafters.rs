//! Several drafters train as one with as many times the batch.

use crate::support::{Log, Trained, config, never_stuck, outcome, train, worst};
use dflash_trainer::config::{Attention, Config, LayerType, MaskForm, Objective, Reduction, Vocabulary};

/// One drafter with the whole batch, and several with a part each.
fn both(drafters: usize, whole: usize, change: impl Fn(&mut Config) + Send + 'static) -> (Trained, Trained) {
    never_stuck(move || {
        let mut config = config();
        change(&mut config);
        config.train.batch = whole;
        let one = train(&config, 1, 1);
        config.train.batch = whole / drafters;
        (one, train(&config, 2, drafters))
    })
}

fn same(one: &Trained, several: &Trained) {
    assert_eq!(one.steps, several.steps);
    // Sums in another order: rounding of float32, and of AdamW's quotients that stay near it.
    assert!(worst(one, several) < 2e-5, "{}", worst(one, several));
    for (a, b) in one.losses.iter().zip(&several.losses) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    assert_eq!(one.losses.len(), several.losses.len());
}

#[test]
fn two_with_a_batch_each_equal_one_with_twice_the_batch() {
    let (one, two) = both(2, 4, |_| ());
    same(&one, &two);
    assert_eq!(two.lanes, ["drafter:0", "drafter:1", "loader", "target:0", "target:1"]);
    // The comparison means something: weights have moved far more than it allows.
    let (other, _) = both(2, 4, |c| c.run.seed = 1);
    assert!(worst(&one, &other) > 1e-3);
}

#[test]
fn six_targets_and_two_drafters_learn_what_one_of_each_does() {
    let (one, many) = never_stuck(|| {
        let mut config = config();
        config.train.batch = 4;
        let one = train(&config, 1, 1);
        config.train.batch = 2;
        (one, train(&config, 6, 2))
    });
    same(&one, &many);
    assert_eq!(many.lanes.iter().filter(|lane| lane.starts_with("target:")).count(), 6);
}

#[test]
fn means_whose_divisor_only_the_device_knows_are_weighted_with_it() {
    let (one, two) = both(2, 4, |c| {
        (c.train.loss, c.train.reduction) = (Objective::Dpace, Reduction::WeightedMean);
    });
    assert!(worst(&one, &two) < 2e-5, "{}", worst(&one, &two));
}

#[test]
fn the_copies_that_learn_compute_as_the_drafter_was_asked_to() {
    let with = |change: fn(&mut Config)| {
        never_stuck(move || {
            let mut config = config();
            change(&mut config);
            train(&config, 1, 1)
        })
    };
    let plain = with(|_| ());
    for other in [with(|c| c.drafter.mask = MaskForm::Dense), with(|c| c.drafter.split_fc = true)] {
        let difference = worst(&plain, &other);
        // Other sums: never quite the same, unless the switch went nowhere.
        assert!(difference > 0.0 && difference < 2e-5, "{difference}");
    }
}

#[test]
fn fused_and_dense_masks_teach_the_same_with_any_layers() {
    let with = |layers: [LayerType; 2], mask| {
        never_stuck(move || {
            let mut config = config();
            // Shorter than the texts, so that it hides something.
            (config.drafter.sliding_window, config.drafter.layer_types) = (6, layers.to_vec());
            config.drafter.mask = mask;
            train(&config, 1, 1)
        })
    };
    let (full, sliding) = (LayerType::FullAttention, LayerType::SlidingAttention);
    let all = [[full, full], [sliding, full], [sliding, sliding]].map(|layers| {
        let [fused, dense] = [MaskForm::Fused, MaskForm::Dense].map(|mask| with(layers, mask));
        assert!(worst(&fused, &dense) < 2e-5, "{layers:?}: {}", worst(&fused, &dense));
        fused
    });
    // They are three trainings, not one.
    assert!(worst(&all[0], &all[1]) > 1e-3 && worst(&all[1], &all[2]) > 1e-3);
}

#[test]
fn attention_by_another_word_changes_no_bit_on_the_cpu_and_a_gpus_word_is_refused() {
    let with = |attention| {
        let mut config = config();
        config.train.attention = attention;
        never_stuck(move || train(&config, 1, 1))
    };
    let own = with(Attention::Own);
    for attention in [Attention::Auto, Attention::Math] {
        assert_eq!(worst(&own, &with(attention)), 0.0, "{attention:?}");
    }
    let mut config = config();
    config.train.attention = Attention::Cudnn;
    let dir = tempfile::tempdir().unwrap();
    let error = outcome(&config, 1, 1, dir.path(), &Log::default(), &|| false).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("attention = \"cudnn\": no device is a GPU"), "{error}");
}

#[test]
fn four_drafters_of_which_some_get_no_rows_equal_one() {
    // Of 11 texts the third step has three left: one drafter gets none.
    let (one, four) = both(4, 4, |_| ());
    same(&one, &four);
}

#[test]
fn accumulated_batches_are_reduced_one_by_one() {
    let (one, two) = both(2, 4, |c| c.train.accumulate = 3);
    same(&one, &two);
    let (plain, _) = both(2, 4, |_| ());
    assert!(worst(&one, &plain) > 1e-3, "a step of three batches is another one");
}

#[test]
fn the_candidates_are_the_same_on_all_drafters() {
    let (one, two) = both(2, 4, |c| {
        c.train.vocabulary = Vocabulary::Candidates;
        (c.train.candidate_low, c.train.candidate_random) = (10, 20);
    });
    same(&one, &two);
}

#[test]
fn every_columns_metrics_are_those_of_all_drafters() {
    let (one, two) = both(2, 4, |_| ());
    let columns = |text: &str| -> Vec<Vec<f64>> {
        let number = |field: &str| field.parse().unwrap_or(f64::NAN);
        text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
    };
    let header: Vec<_> = one.metrics.lines().next().unwrap().split(',').collect();
    let (a, b) = (columns(&one.metrics), columns(&two.metrics));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        for ((name, a), b) in header.iter().zip(a).zip(b) {
            // Times and rates are the machine's.
            let own = name.starts_with("time") || name.ends_with("per_s");
            assert!(own || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-4, "{name}: {a} {b}");
        }
    }
}

#[test]
fn a_stop_ends_all_drafters_at_the_same_step_and_its_figures_are_told() {
    let (steps, metrics) = never_stuck(|| {
        let mut config = config();
        (config.train.steps, config.profile.log_every) = (1_000_000, 1_000_000);
        let dir = tempfile::tempdir().unwrap();
        let log = Log::default();
        let stop = || log.0.lock().unwrap().len() > 5;
        let outcome = outcome(&config, 2, 3, dir.path(), &log, &stop).unwrap();
        (outcome.steps, std::fs::read_to_string(dir.path().join("metrics.csv")).unwrap())
    });
    assert!((6..1_000_000).contains(&steps), "{steps}");
    // The first drafter's own share: how fast all were, it does not know.
    let (names, row) = (metrics.lines().next().unwrap(), metrics.lines().last().unwrap());
    let value = |name: &str| row.split(',').nth(names.split(',').position(|n| n == name).unwrap()).unwrap();
    assert_eq!((value("step").parse().ok(), value("tokens_per_s")), (Some(steps), ""), "{metrics}");
    assert!(value("loss").parse::<f64>().unwrap() > 0.0);
}

#[test]
fn a_targets_panic_ends_all_with_its_lane_and_cause() {
    let error = never_stuck(|| {
        let mut config = config();
        // The target has eight layers: its forward pass panics.
        config.drafter.target_layer_ids = vec![1, 99];
        let dir = tempfile::tempdir().unwrap();
        outcome(&config, 2, 2, dir.path(), &Log::default(), &|| false).err().unwrap().to_string()
    });
    assert!(error.starts_with("target:") && error.contains("out of range"), "{error}");
}

#[test]
fn gradients_that_are_added_up_meanwhile_are_the_same() {
    for drafters in [2, 3] {
        let run = |overlap: bool, change: fn(&mut Config)| {
            never_stuck(move || {
                let mut config = config();
                change(&mut config);
                config.pipeline.reduce_overlap = overlap;
                train(&config, 2, drafters)
            })
        };
        // The third step's texts do not suffice for all; batches that add up; layers that are computed again.
        let changes: [fn(&mut Config); 4] = [
            |_| (),
            |c| c.train.accumulate = 3,
            |c| c.train.checkpointing = true,
            |c| (c.train.loss, c.train.reduction) = (Objective::Dpace, Reduction::WeightedMean),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let (after, meanwhile) = (run(false, change), run(true, change));
            assert_eq!(worst(&after, &meanwhile), 0.0, "{drafters} drafters, change {number}");
            assert_eq!(after.losses, meanwhile.losses);
        }
    }
}

#[test]
fn a_stop_ends_drafters_that_add_up_meanwhile() {
    let steps = never_stuck(|| {
        let mut config = config();
        (config.train.steps, config.pipeline.reduce_overlap) = (1_000_000, true);
        let (dir, log) = (tempfile::tempdir().unwrap(), Log::default());
        let stop = || log.0.lock().unwrap().len() > 5;
        outcome(&config, 2, 3, dir.path(), &log, &stop).unwrap().steps
    });
    assert!((6..1_000_000).contains(&steps), "{steps}");
}
