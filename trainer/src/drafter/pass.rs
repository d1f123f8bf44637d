//! A training pass through the drafter whose layers may be computed twice instead of being kept.
//!
//! tch has no checkpointing. Here the forward keeps only each layer's input; going back, a layer is computed again with a
//! graph, and the gradient of its output is led through it to its input. The same operators on the same numbers: exact.

use super::blocks::Blocks;
use super::mask::BlockMask;
use super::model::DFlashDrafter;
use tch::{Kind, Tensor};

/// A forward pass, to be gone back through once.
pub struct Pass<'a> {
    /// Outputs after the final norm, [b, N·B, D].
    pub y: Tensor,
    kept: Option<Kept<'a>>,
}

/// What is needed to compute the layers again.
struct Kept<'a> {
    drafter: &'a DFlashDrafter,
    mask: &'a BlockMask,
    /// [b, N·B]
    positions: &'a Tensor,
    /// Positions of the context.
    rows: Tensor,
    /// Context features with their graph, and cut off from it.
    context: (Tensor, Tensor),
    /// Each layer's input, and the last one's output; without a graph.
    inputs: Vec<Tensor>,
}

impl<'a> Pass<'a> {
    /// Taps [b, S, n·D] and embedded blocks [b, N·B, D] through the drafter; `again`: layers are computed again in
    /// [`Pass::backward`].
    pub fn forward(
        drafter: &'a DFlashDrafter,
        taps: &Tensor,
        embedded: &Tensor,
        blocks: &'a Blocks,
        mask: &'a BlockMask,
        again: bool,
    ) -> Self {
        if !again {
            return Self { y: drafter.forward(taps, embedded, blocks, mask), kept: None };
        }
        let context = drafter.context(taps);
        let rows = blocks.context_positions(context.size()[1]);
        let cut = context.detach().set_requires_grad(true);
        let mut kept = Kept {
            drafter,
            mask,
            positions: &blocks.positions,
            rows,
            context: (context, cut),
            inputs: vec![embedded.detach()],
        };
        for index in 0..drafter.config.layers as usize {
            let next = tch::no_grad(|| kept.layer(index, &kept.inputs[index]));
            kept.inputs.push(next);
        }
        let last = leaf(&kept.inputs.pop().unwrap_or_default());
        let y = drafter.last(&last);
        kept.inputs.push(last);
        Self { y, kept: Some(kept) }
    }

    /// Adds the gradients of `loss`, a scalar made of [`Pass::y`], to those of the weights.
    pub fn backward(self, loss: &Tensor) {
        loss.backward();
        if let Some(kept) = self.kept {
            kept.backward();
        }
    }
}

impl Kept<'_> {
    fn layer(&self, index: usize, x: &Tensor) -> Tensor {
        let context = self.drafter.context_kv(index, &self.context.1, &self.rows);
        self.drafter.layer(index, x, self.positions, self.drafter.config.block_size, self.mask, &context)
    }

    fn backward(mut self) {
        let Some(last) = self.inputs.pop() else { return };
        let mut gradient = last.grad();
        for index in (0..self.inputs.len()).rev() {
            let Some(input) = self.inputs.pop() else { return };
            let input = leaf(&input);
            back(&self.layer(index, &input), &gradient);
            gradient = input.grad();
        }
        back(&self.context.0, &self.context.1.grad());
    }
}

/// A tensor without history whose gradient is kept.
fn leaf(t: &Tensor) -> Tensor {
    t.detach().set_requires_grad(true)
}

/// Leads the gradient of `output` back to the leaves: of the product's sum, `gradient` is exactly output's gradient.
fn back(output: &Tensor, gradient: &Tensor) {
    if gradient.defined() {
        (output * gradient).sum(Kind::Float).backward();
    }
}
