//! Layers that are computed again going back give the gradients of layers that were kept.

use crate::case::{CASES, Case};
use crate::support::worst;
use dflash_trainer::drafter::Pass;
use dflash_trainer::loss::Goal;
use tch::{Kind, Tensor};

#[test]
fn gradients_are_the_same() {
    for name in CASES {
        let run = |again: bool| -> (Tensor, Vec<(String, Tensor)>) {
            let case = Case::load(name, Kind::Float);
            let blocks = case.blocks();
            let mask = case.mask(&blocks);
            let pass = Pass::forward(&case.drafter, &case.hidden(), &case.embedded(&blocks), &blocks, &mask, again);
            let loss = case.loss(&pass.y, &blocks, &Goal::cross_entropy(4.0, case.drafter.config.block_size));
            pass.backward(&loss.mean);
            let gradients = case.drafter.parameters().iter().map(|(n, w)| (n.clone(), w.grad())).collect();
            (loss.mean.detach(), gradients)
        };
        let (kept, again) = (run(false), run(true));
        assert_eq!(worst(&kept.0, &again.0), 0.0, "{name}: the loss");
        for ((tensor, a), (_, b)) in kept.1.iter().zip(&again.1) {
            // Sums over layers are made in another order.
            let size = a.abs().max().double_value(&[]).max(1e-3);
            assert!(worst(a, b) <= 1e-6 * size, "{name} {tensor}: {:.1e} of {size:.1e}", worst(a, b));
        }
    }
}
