//! The optimizer's step against its formula, where libtorch does it (CPU) and where our kernel does (a GPU of its kind).

use crate::support::{GPU, gpus, whole_libtorch};
use dflash_torch::optimizer::{AdamWStep, AdamWWeight, OnDevice, adamw, forget_gradient, norm_of_all};
use tch::{Device, Kind, Tensor};

const STEP: AdamWStep = AdamWStep { rate: 1e-2, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.1 };

/// Master, moments and gradient of one weight.
fn state(device: Device, kind: Kind) -> [Tensor; 4] {
    tch::manual_seed(3);
    let random = || Tensor::rand([5, 77], (Kind::Float, Device::Cpu)).to_device(device);
    [random(), random(), random(), random().to_kind(kind)]
}

fn number(value: f64, kind: Kind, device: Device) -> Tensor {
    Tensor::full([], value, (kind, device))
}

/// The third step, by the formula, in float64: master and moments.
fn formula([master, first, second, gradient]: &[Tensor; 4], scale: f64) -> [Tensor; 3] {
    let double = |t: &Tensor| t.to_kind(Kind::Double);
    let gradient = double(gradient) * scale;
    let first = double(first) * 0.9 + &gradient * 0.1;
    let second = double(second) * 0.999 + gradient.square() * 0.001;
    let divisor = second.sqrt() / (1.0 - 0.999f64.powi(3)).sqrt() + STEP.eps;
    let master = double(master) * (1.0 - 1e-2 * 0.1) - &first / divisor * (1e-2 / (1.0 - 0.9f64.powi(3)));
    [master, first, second]
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let (a, b) = (a.to_kind(Kind::Double), b.to_kind(Kind::Double));
    ((a - &b).norm() / b.norm()).double_value(&[])
}

fn follows_the_formula(device: Device, kind: Kind) {
    let before = state(device, kind);
    let now = before.each_ref().map(Tensor::copy);
    let working = now[0].zeros_like().to_kind(kind);
    let [master, first, second, gradient] = &now;
    let weight = AdamWWeight { master, first, second, gradient, working: &working };
    let (scale, step) = (number(0.25, Kind::Float, device), number(3.0, Kind::Double, device));
    let finite = number(1.0, Kind::Bool, device);
    adamw(&[weight], &STEP, OnDevice { scale: &scale, finite: &finite, step: &step }).expect("a step");
    for (got, want) in now.iter().zip(&formula(&before, 0.25)) {
        let off = distance(got, want);
        assert!(off < 1e-6, "{off}");
    }
    assert_eq!(distance(&working, &master.to_kind(kind)), 0.0);

    let kept = now.each_ref().map(Tensor::copy);
    let weight = AdamWWeight { master, first, second, gradient: &(gradient * f64::NAN), working: &working };
    let finite = number(0.0, Kind::Bool, device);
    adamw(&[weight], &STEP, OnDevice { scale: &scale, finite: &finite, step: &step }).expect("a step");
    for (got, want) in now.iter().zip(&kept).take(3) {
        assert_eq!(distance(got, want), 0.0, "a step that is no number changes nothing");
    }
}

#[test]
fn libtorchs_step_follows_the_formula() {
    whole_libtorch();
    follows_the_formula(Device::Cpu, Kind::Float);
    follows_the_formula(Device::Cpu, Kind::BFloat16);
}

#[test]
fn a_gpus_step_follows_the_formula() {
    let Some(_gpus) = gpus("a_gpus_step_follows_the_formula", 1) else { return };
    follows_the_formula(GPU, Kind::Float);
    follows_the_formula(GPU, Kind::BFloat16);
}

#[test]
fn the_norm_is_that_of_all_together() {
    whole_libtorch();
    let parts = [Tensor::from_slice(&[3f32, 0.0]), Tensor::from_slice(&[4f32]).to_kind(Kind::BFloat16)];
    assert_eq!(norm_of_all(&parts).unwrap().unwrap().double_value(&[]), 5.0);
    assert!(norm_of_all(&[]).unwrap().is_none());
}

#[test]
fn a_forgotten_gradient_is_made_anew() {
    whole_libtorch();
    let mut weight = Tensor::from_slice(&[2f32]).set_requires_grad(true);
    (&weight * 3.0).sum(Kind::Float).backward();
    forget_gradient(&mut weight).unwrap();
    assert!(!weight.grad().defined());
    (&weight * 4.0).sum(Kind::Float).backward();
    assert_eq!(weight.grad().double_value(&[0]), 4.0);
}
