//! Gradients are told of as they are made.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::support::{GPU, gpus, whole_libtorch};
use dflash_torch::GradientWatch;
use std::sync::{Arc, Mutex};
use tch::{Device, Kind, Tensor};

fn each_is_told_of_once_and_complete(device: Device) {
    let weight = |value: f64| Tensor::full([2], value, (Kind::Float, device)).set_requires_grad(true);
    let weights = [weight(2.0), weight(3.0), weight(5.0)];
    let own: Vec<Tensor> = weights.iter().map(Tensor::shallow_clone).collect();
    let (own, told) = (Arc::new(Mutex::new(own)), Arc::new(Mutex::new(Vec::new())));
    let (seen, heard) = (Arc::clone(&own), Arc::clone(&told));
    let watch = GradientWatch::new(&weights, move |number| {
        let gradient = seen.lock().unwrap()[number].grad().double_value(&[0]);
        heard.lock().unwrap().push((number, gradient));
    })
    .unwrap();
    let take = || std::mem::take(&mut *told.lock().unwrap());
    // The second one is used twice, the last one not at all.
    let y = &weights[0] * &weights[1] + &weights[1];
    y.sum(Kind::Float).backward();
    let mut first = take();
    first.sort_by_key(|(number, _)| *number);
    assert_eq!(first, [(0, 3.0), (1, 3.0)]);
    // Behind its last use, and added to what was there.
    (&weights[2] * &weights[2] * &weights[0]).sum(Kind::Float).backward();
    let mut second = take();
    second.sort_by_key(|(number, _)| *number);
    assert_eq!(second, [(0, 3.0 + 25.0), (2, 2.0 * 5.0 * 2.0)]);
    drop(watch);
    weights[0].sum(Kind::Float).backward();
    assert!(take().is_empty(), "nobody watches any more");
}

#[test]
fn each_gradient_is_told_of_once_and_complete() {
    whole_libtorch();
    each_is_told_of_once_and_complete(Device::Cpu);
    let Some(_alone) = gpus("each_gradient_is_told_of_once_and_complete", 1) else { return };
    each_is_told_of_once_and_complete(GPU);
}

#[test]
fn who_is_told_may_panic_and_what_has_no_gradient_is_refused() {
    whole_libtorch();
    let weight = Tensor::ones([1], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    let _watch = GradientWatch::new([&weight], |_| panic!("planted")).unwrap();
    (&weight * 2.0).sum(Kind::Float).backward();
    assert_eq!(weight.grad().double_value(&[0]), 2.0);
    let constant = Tensor::ones([1], (Kind::Float, Device::Cpu));
    let error = GradientWatch::new([&constant], |_| ()).unwrap_err().to_string();
    assert!(error.starts_with("watch a gradient: only a leaf"), "{error}");
}
