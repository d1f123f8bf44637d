//! What the blocks see, as our own kernel is told it: two numbers a block instead of a mask.

use super::blocks::{Blocks, Reach};
use super::config::{DrafterConfig, Sliding};
use crate::config::{LayerType, MaskForm, WindowRule};
use crate::device::upload;
use crate::model::kernels::sound;
use dflash_torch::fused;
use tch::{Kind, Tensor};

/// The context that each block sees: rows first..anchor, fewer in a sliding layer.
#[derive(Debug)]
pub(super) struct Walk {
    /// [b, N] Int64; 0 where the block is not kept.
    anchors: Tensor,
    /// [b, N] Int64: where its document begins.
    starts: Tensor,
    sliding: Option<(Tensor, Sliding)>,
    block: i64,
}

impl Walk {
    /// `None` where the kernel does not run: on another device, for other shapes, or if another form is asked for.
    pub(super) fn new(blocks: &Blocks, config: &DrafterConfig, form: MaskForm, kind: Kind) -> Option<Self> {
        let device = blocks.anchors.device();
        let takes = fused::heads_take(config.head_dim) && fused::attend_takes(config.block_size);
        if form != MaskForm::Fused || !takes || !fused::attends(kind, device) {
            return None;
        }
        let shape = blocks.anchors.size();
        let place = |number: &dyn Fn(Reach) -> i64| {
            let numbers: Vec<i64> = blocks.reach.iter().map(|reach| reach.map_or(0, number)).collect();
            upload(&numbers, device).view(&shape[..])
        };
        let sliding = config.sliding.map(|sliding| match sliding.rule {
            WindowRule::Slot => (place(&|reach| reach.start), sliding),
            WindowRule::Anchor => (place(&|reach| reach.start.max(reach.anchor - sliding.window)), sliding),
        });
        let (anchors, starts) = (place(&|reach| reach.anchor), place(&|reach| reach.start));
        Some(Self { anchors, starts, sliding, block: config.block_size })
    }

    /// q [b, H, Q, d], keys and values of the context [b, G, S, d] and of the blocks [b, G, Q, d] -> [b, H, Q, d].
    pub(super) fn attend(
        &self,
        q: &Tensor,
        context: (&Tensor, &Tensor),
        own: (&Tensor, &Tensor),
        layer: LayerType,
    ) -> Tensor {
        let sliding = self.sliding.as_ref().filter(|_| layer == LayerType::SlidingAttention);
        let sight = fused::Sight {
            anchors: &self.anchors,
            first: sliding.map_or(&self.starts, |(first, _)| first),
            block: self.block,
            window: sliding.and_then(|(_, s)| (s.rule == WindowRule::Slot).then_some(s.window)),
            causal: sliding.is_some_and(|(_, s)| s.causal),
        };
        // The kernel wants the heads of a row beside each other, as the projections leave them.
        let rows = |t: &Tensor| t.transpose(1, 2);
        let (context, own) = ((rows(context.0), rows(context.1)), (rows(own.0), rows(own.1)));
        sound(fused::attend(&rows(q), (&context.0, &context.1), (&own.0, &own.1), &sight)).transpose(1, 2)
    }
}
