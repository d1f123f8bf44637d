//! Our own kernels against the same written in libtorch's operators in float32, values and gradients.

use crate::support::{GPU, gpus, whole_libtorch};
use dflash_torch::fused::{self, Sight};
use dflash_torch::{Handoff, Priority, Stream};
use std::io::Write;
use tch::{Device, Kind, Tensor};

/// bfloat16 keeps eight bits: three digits are rounding, not error.
const ROUNDING: f64 = 8e-3;

fn random(shape: &[i64]) -> Tensor {
    Tensor::randn(shape, (Kind::Float, GPU)).to_kind(Kind::BFloat16)
}

/// The same numbers as leaves, in bfloat16 and in float32.
fn leaves<const N: usize>(inputs: &[Tensor; N]) -> ([Tensor; N], [Tensor; N]) {
    let leaf = |t: &Tensor, kind| t.detach().to_kind(kind).copy().set_requires_grad(true);
    (inputs.each_ref().map(|t| leaf(t, Kind::BFloat16)), inputs.each_ref().map(|t| leaf(t, Kind::Float)))
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let (a, b) = (a.to_kind(Kind::Double), b.to_kind(Kind::Double));
    ((a - &b).norm() / b.norm()).double_value(&[])
}

/// Both outputs are alike, and so are all gradients of a random weighting of them.
fn alike(what: &str, own: (&Tensor, &[Tensor]), plain: (&Tensor, &[Tensor])) {
    let off = distance(own.0, plain.0);
    assert!(off < ROUNDING, "{what}: {off}");
    let weights = random(&own.0.size());
    (own.0 * &weights).sum(Kind::Float).backward();
    (plain.0 * weights.to_kind(Kind::Float)).sum(Kind::Float).backward();
    for (i, (a, b)) in own.1.iter().zip(plain.1).enumerate() {
        let off = distance(&a.grad(), &b.grad());
        assert!(off < ROUNDING, "{what}, gradient {i}: {off}");
    }
}

/// The GPUs, if our kernels are made for the first.
fn hopper(test: &str) -> Option<std::sync::MutexGuard<'static, ()>> {
    let gpus = gpus(test, 1)?;
    if fused::runs(Kind::BFloat16, GPU) {
        return Some(gpus);
    }
    let told = format!("SKIPPED {test}: our kernels are not made for this GPU\n");
    let _ = std::io::stderr().write_all(told.as_bytes());
    None
}

fn plain_norm(x: &Tensor, weight: &Tensor) -> Tensor {
    x * (x.square().mean_dim(-1, true, Kind::Float) + 1e-6).rsqrt() * weight
}

#[test]
fn norms_are_alike() {
    let Some(_gpus) = hopper("norms_are_alike") else { return };
    for width in [576, 1024, 4096] {
        let (own, plain) = leaves(&[random(&[3, 50, width]), random(&[3, 50, width]), random(&[width])]);
        let (out, sum) = fused::norm(&own[0], Some(&own[1]), &own[2], 1e-6).unwrap();
        let total = &plain[0] + &plain[1];
        let both = out + sum.unwrap();
        alike("norm", (&both, &own), (&(plain_norm(&total, &plain[2]) + &total), &plain));
    }
}

#[test]
fn rotated_heads_are_alike() {
    let Some(_gpus) = hopper("rotated_heads_are_alike") else { return };
    let (heads, d) = (5, 64);
    let tables = [random(&[40, d / 2]), random(&[40, d / 2])].map(|t| Tensor::cat(&[&t, &t], -1));
    let positions = Tensor::randint(40, [2, 30], (Kind::Int64, GPU));
    let (own, plain) = leaves(&[random(&[2, 30, heads * d]), random(&[d])]);
    let out = fused::rope(&own[0], Some(&own[1]), (&tables[0], &tables[1]), &positions, 1e-6).unwrap();
    let normed = plain_norm(&plain[0].view([2, 30, heads, d]), &plain[1]);
    let pick = |t: &Tensor| t.index_select(0, &positions.view([-1])).view([2, 30, 1, d]).to_kind(Kind::Float);
    let halves = normed.chunk(2, -1);
    let turned = Tensor::cat(&[&halves[1].neg(), &halves[0]], -1);
    let want = &normed * pick(&tables[0]) + turned * pick(&tables[1]);
    alike("rope", (&out, &own), (&want, &plain));
}

#[test]
fn gates_are_alike() {
    let Some(_gpus) = hopper("gates_are_alike") else { return };
    let (own, plain) = leaves(&[random(&[7, 999]), random(&[7, 999])]);
    let out = fused::swiglu(&own[0], &own[1]).unwrap();
    alike("swiglu", (&out, &own), (&(plain[0].silu() * &plain[1]), &plain));
}

#[test]
fn attention_is_alike() {
    let Some(_gpus) = hopper("attention_is_alike") else { return };
    for (d, window, causal) in [(128, None, false), (64, Some(20), true)] {
        let (b, s, n, block, heads, groups) = (2, 150, 9, 16, 4, 2);
        let q = n * block;
        let (own, plain) = leaves(&[
            random(&[b, q, heads, d]),
            random(&[b, s, groups, d]),
            random(&[b, s, groups, d]),
            random(&[b, q, groups, d]),
            random(&[b, q, groups, d]),
        ]);
        // The last block is not kept: its anchor is 0.
        let anchors = Tensor::cat(
            &[
                Tensor::randint(s, [b, n - 1], (Kind::Int64, GPU)).sort(-1, false).0,
                Tensor::zeros([b, 1], (Kind::Int64, GPU)),
            ],
            1,
        );
        let first = anchors.divide_scalar_mode(3, "floor").to_kind(Kind::Int64);
        let sight = Sight { anchors: &anchors, first: &first, block, window, causal };
        let out = fused::attend(&own[0], (&own[1], &own[2]), (&own[3], &own[4]), &sight).unwrap();
        let seen = seen(&sight, s, q);
        let repeat = |t: &Tensor| t.repeat_interleave_self_int(heads / groups, 2, None);
        let joined = |context: &Tensor, own: &Tensor| repeat(&Tensor::cat(&[context, own], 1)).transpose(1, 2);
        let (keys, values) = (joined(&plain[1], &plain[3]), joined(&plain[2], &plain[4]));
        let scores = plain[0].transpose(1, 2).matmul(&keys.transpose(-1, -2)) * (d as f64).powf(-0.5);
        let p = scores.masked_fill(&seen.logical_not(), f64::NEG_INFINITY).softmax(-1, Kind::Float);
        alike("attention", (&out, &own), (&p.matmul(&values).transpose(1, 2), &plain));
    }
}

/// The whole mask: [b, 1, Q, S + Q].
fn seen(sight: &Sight<'_>, s: i64, q: i64) -> Tensor {
    let options = (Kind::Int64, GPU);
    let row = Tensor::arange(q, options);
    let of_row = row.divide_scalar_mode(sight.block, "floor").to_kind(Kind::Int64);
    let pick = |t: &Tensor| t.index_select(1, &of_row).unsqueeze(-1);
    let (high, low) = (pick(sight.anchors), pick(sight.first));
    let column = Tensor::arange(s, options);
    let slot = (&row - &of_row * sight.block).view([1, -1, 1]);
    let low = low.maximum(&(&high + slot - sight.window.unwrap_or(1 << 30) + 1));
    let far = column.lt_tensor(&high).logical_and(&column.ge_tensor(&low));
    let near = of_row.unsqueeze(1).eq_tensor(&of_row.unsqueeze(0));
    let near = if sight.causal { near.tril(0) } else { near };
    let near = near.unsqueeze(0).expand([far.size()[0], q, q], false);
    Tensor::cat(&[far, near], -1).unsqueeze(1)
}

#[test]
fn losses_are_alike() {
    let Some(_gpus) = hopper("losses_are_alike") else { return };
    let (rows, width) = (33, 5008);
    let logits = random(&[rows, width]) * 3.0;
    let labels = Tensor::randint(width, [rows], (Kind::Int64, GPU));
    let weights = Tensor::rand([rows], (Kind::Float, GPU));
    let wide = logits.to_kind(Kind::Float).set_requires_grad(true);
    let want = wide.cross_entropy_loss(&labels, None::<Tensor>, tch::Reduction::None, -100, 0.0);
    (&want * &weights).sum(Kind::Float).backward();
    let (loss, best) = fused::cross_entropy(&logits, &labels, &weights).unwrap();
    assert!(distance(&loss, &want) < 1e-5);
    assert!(distance(&logits, &wide.grad()) < ROUNDING);
    assert!(bool::try_from(best.eq_tensor(&wide.max_dim(-1, false).1).all()).unwrap());
}

#[test]
fn no_kernel_runs_on_the_cpu() {
    whole_libtorch();
    let x = Tensor::zeros([2, 16], (Kind::BFloat16, Device::Cpu));
    assert!(!fused::runs_on(&x));
}

#[test]
fn a_tensor_is_handed_from_stream_to_stream() {
    let on_cpu = Handoff::of(Tensor::from_slice(&[1i64])).unwrap().take().unwrap();
    assert_eq!(on_cpu.int64_value(&[0]), 1);
    let Some(_gpus) = gpus("a_tensor_is_handed_from_stream_to_stream", 1) else { return };
    let handed = {
        let _own = Stream::from_pool(GPU, Priority::Normal).unwrap().enter().unwrap();
        let late = crate::support::multiply(GPU, 100);
        Handoff::of(late + 1.0).unwrap()
    };
    let _own = Stream::from_pool(GPU, Priority::Normal).unwrap().enter().unwrap();
    let sum = handed.take().unwrap().mean(Kind::Double).double_value(&[]);
    assert_eq!(sum, 2.0);
}
