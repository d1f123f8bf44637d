//! Gradients of every tensor of the drafter against SpecForge, for each loss.

use super::Report;
use super::drafter::{Oracle, off};
use crate::case::{CASES, Case};
use crate::support::{Tensors, data, relative, worst};
use dflash_trainer::config::{Objective, Reduction};
use dflash_trainer::loss::Goal;
use serde_json::Value;
use tch::{Kind, Tensor};

#[test]
fn parity_drafter_gradients() {
    let mut report = Report::new("drafter");
    let losses =
        [("ce", Objective::CrossEntropy, 5e-6), ("dpace", Objective::Dpace, 1e-4), ("kl", Objective::Kl, 5e-6)];
    for name in CASES {
        let oracle = Oracle::load(name);
        let mut line = report.line(format!("{name} gradients"));
        for (loss, objective, tolerance) in losses {
            let file = data("drafter").join(name).join(format!("grads_{loss}.safetensors"));
            let stored = file.exists().then(|| Tensors::read(file));
            for chunk_blocks in [0, 3] {
                let goal = Goal { chunk_blocks, ..oracle.goal(objective, Reduction::Auto) };
                let case = gradients(name, Kind::Float, &goal);
                if let Some(want) = &stored {
                    assert_eq!(want.iter().count(), case.drafter.parameters().len());
                    let errors = case.drafter.parameters().iter().map(|(n, w)| worst(&w.grad(), &want.get(n)));
                    line.check(loss, errors.fold(0.0, f64::max), tolerance);
                }
                let want = oracle.number(&format!("/gradient_norm/{loss}"));
                line.check(&format!("{loss} norm"), off(total_norm(&case), want), 1e-5);
                line.check("of each tensor", worst_norm(&case, &oracle.figures["gradient_norms"][loss], want), 1e-5);
            }
            if let Some(want) = &stored {
                let case = gradients(name, Kind::BFloat16, &oracle.goal(objective, Reduction::Auto));
                line.check(&format!("{loss} bf16"), all_relative(&case, want), 0.06);
                let each = case.drafter.parameters().iter().map(|(n, w)| relative(&w.grad(), &want.get(n)));
                line.check("of one tensor", each.fold(0.0, f64::max), 0.2);
            }
        }
    }
    report.finish();
}

/// A case after its backward pass.
fn gradients(name: &str, kind: Kind, goal: &Goal) -> Case {
    let case = Case::load(name, kind);
    let blocks = case.blocks();
    case.loss(&case.forward(&blocks, &case.hidden()), &blocks, goal).mean.backward();
    case
}

fn total_norm(case: &Case) -> f64 {
    let squares = case.drafter.parameters().iter().map(|(_, w)| w.grad().square().sum(Kind::Double).double_value(&[]));
    squares.sum::<f64>().sqrt()
}

/// The largest error of a tensor's norm, in shares of the norm of all.
fn worst_norm(case: &Case, want: &Value, all: f64) -> f64 {
    let norms = want.as_object().unwrap();
    assert_eq!(norms.len(), case.drafter.parameters().len());
    let error =
        |(name, w): &(String, Tensor)| (w.grad().norm().double_value(&[]) - norms[name].as_f64().unwrap()).abs() / all;
    case.drafter.parameters().iter().map(error).fold(0.0, f64::max)
}

/// |got - want| / |want| over all tensors together.
fn all_relative(case: &Case, want: &Tensors) -> f64 {
    let flat = |t: &Tensor| t.to_kind(Kind::Double).view([-1]);
    let got: Vec<_> = case.drafter.parameters().iter().map(|(_, w)| flat(&w.grad())).collect();
    let want: Vec<_> = case.drafter.parameters().iter().map(|(n, _)| flat(&want.get(n))).collect();
    relative(&Tensor::cat(&got, 0), &Tensor::cat(&want, 0))
}
