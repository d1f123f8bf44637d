//! What the optimizer promises besides its numbers.

use crate::support::{random, relative, within, worst};
use dflash_trainer::optim::{MuonSettings, Optimizer, Settings};
use tch::{Device, Kind, Tensor};

fn settings(muon: bool) -> Settings {
    let muon = muon.then_some(MuonSettings { learning_rate: 1e-2, momentum: 0.9, weight_decay: 0.1, iterations: 5 });
    Settings { learning_rate: 1e-2, betas: (0.9, 0.99), weight_decay: 0.1, muon, clip: 1.0 }
}

fn weights(kind: Kind) -> Vec<(String, Tensor)> {
    let leaf = |shape: &[i64]| random(shape, 4).to_kind(kind).set_requires_grad(true);
    vec![("matrix".to_owned(), leaf(&[4, 6])), ("norm".to_owned(), leaf(&[6]))]
}

/// Gives every weight a gradient that depends on the step, and makes the step.
fn step(optimizer: &mut Optimizer, weights: &[(String, Tensor)], number: i64) {
    for (_, w) in weights {
        let pull = (w.detach() * 3.0 + number as f64).cos();
        (w * pull).sum(Kind::Float).backward();
    }
    let gate = optimizer.gate(&[]);
    optimizer.step(1.0, &gate);
}

/// Plants a gradient that is no number.
fn spoil(weights: &[(String, Tensor)]) {
    (&weights[1].1 * f64::NAN).sum(Kind::Float).backward();
}

fn copies(state: &[(String, Tensor)]) -> Vec<Tensor> {
    state.iter().map(|(_, t)| t.copy()).collect()
}

/// Weights in bfloat16 would swallow steps of this size; masters in float32 must not.
#[test]
fn small_steps_add_up_in_the_masters() {
    let weight = Tensor::ones([4, 4], (Kind::BFloat16, Device::Cpu)).set_requires_grad(true);
    let settings = Settings { learning_rate: 1e-4, betas: (0.9, 0.999), weight_decay: 0.0, muon: None, clip: 0.0 };
    let mut optimizer = Optimizer::new(&[("w".to_owned(), weight.shallow_clone())], settings);
    for _ in 0..100 {
        weight.sum(Kind::Float).backward();
        let gate = optimizer.gate(&[]);
        optimizer.step(1.0, &gate);
    }
    let want = Tensor::full([4, 4], 1.0 - 100.0 * 1e-4, (Kind::Float, Device::Cpu));
    within("weight", relative(&weight.detach(), &want), 0.004);
}

#[test]
fn a_step_with_a_gradient_that_is_no_number_changes_nothing() {
    for (muon, kind) in [(false, Kind::Float), (true, Kind::Float), (false, Kind::BFloat16), (true, Kind::BFloat16)] {
        let (spoilt, clean) = (weights(kind), weights(kind));
        let mut optimizer = Optimizer::new(&spoilt, settings(muon));
        let mut other = Optimizer::new(&clean, settings(muon));
        // Also as the very first step, when there are no moments yet.
        for number in 0..6 {
            if number % 3 != 2 {
                spoil(&spoilt);
                let before = (copies(&spoilt), copies(&optimizer.state()));
                let gate = optimizer.gate(&[]);
                optimizer.step(1.0, &gate);
                assert!(gate.finite.int64_value(&[]) == 0 && gate.norm.double_value(&[]).is_nan());
                let after = (copies(&spoilt), copies(&optimizer.state()));
                assert!(before.0.iter().zip(&after.0).all(|(a, b)| a.equal(b)));
                assert!(before.1.iter().zip(&after.1).all(|(a, b)| a.equal(b)), "step {number}");
            } else {
                step(&mut optimizer, &spoilt, number);
                step(&mut other, &clean, number);
            }
        }
        // The steps between are as if the spoilt ones had never been.
        for ((name, a), (_, b)) in spoilt.iter().zip(&clean) {
            assert!(a.equal(b), "{name}");
        }
    }
}

#[test]
fn a_loss_that_is_no_number_skips_the_step_too() {
    let weights = weights(Kind::Float);
    let mut optimizer = Optimizer::new(&weights, settings(false));
    weights[0].1.sum(Kind::Float).backward();
    let before = copies(&weights);
    let gate = optimizer.gate(&[Tensor::from(1.0), Tensor::from(f64::INFINITY)]);
    optimizer.step(1.0, &gate);
    assert!(before.iter().zip(copies(&weights)).all(|(a, b)| a.equal(&b)));
    assert_eq!(gate.finite.int64_value(&[]), 0);
}

#[test]
fn a_restored_state_goes_on_bit_for_bit() {
    for (muon, kind) in [(false, Kind::Float), (true, Kind::BFloat16)] {
        let (straight, first, second) = (weights(kind), weights(kind), weights(kind));
        let mut optimizer = Optimizer::new(&straight, settings(muon));
        (0..7).for_each(|number| step(&mut optimizer, &straight, number));
        let mut before = Optimizer::new(&first, settings(muon));
        (0..4).for_each(|number| step(&mut before, &first, number));
        let state: Vec<_> = before.state().into_iter().map(|(n, t)| (n, t.copy())).collect();
        let mut after = Optimizer::new(&second, settings(muon));
        let get = |name: &str| state.iter().find(|(n, _)| n == name).map(|(_, t)| t.shallow_clone());
        after.restore(get).unwrap();
        (4..7).for_each(|number| step(&mut after, &second, number));
        for ((name, a), (_, b)) in straight.iter().zip(&second) {
            assert_eq!(worst(a, b), 0.0, "{name}");
        }
        let error = after.restore(|name| get(name).filter(|_| name != "norm.first")).unwrap_err();
        assert_eq!(error, "norm.first");
    }
}
