//! The drafter's cache at inference: keys and values of the context, never of a block.

use super::{BlockMask, DFlashDrafter};
use crate::target::KvCache;
use tch::{Kind, Tensor};

/// Keys and values of the context rows so far, of one sequence.
#[derive(Debug)]
pub struct ContextCache {
    cache: KvCache,
}

impl ContextCache {
    /// An empty cache with room for `capacity` rows.
    #[must_use]
    pub fn new(drafter: &DFlashDrafter, capacity: i64, kind: Kind, device: tch::Device) -> Self {
        let c = &drafter.config;
        Self { cache: KvCache::new(c.layers, [1, c.kv_heads, c.head_dim], capacity, kind, device) }
    }

    /// Rows so far.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.cache.length()
    }

    /// Adds the rows of further taps [1, rows, n·D].
    pub fn extend(&mut self, drafter: &DFlashDrafter, taps: &Tensor) {
        let rows = taps.size()[1];
        let ctx = drafter.context(taps);
        let positions = Tensor::arange_start(self.length(), self.length() + rows, (Kind::Int64, taps.device()));
        for layer in 0..drafter.config.layers as usize {
            let (k, v) = drafter.context_kv(layer, &ctx, &positions);
            let _ = self.cache.extend(layer, &k, &v);
        }
        self.cache.advance(rows);
    }

    /// One block, embedded [1, B, D], right behind the context -> [1, B, D].
    pub fn block(&self, drafter: &DFlashDrafter, embedded: &Tensor) -> Tensor {
        let (start, block) = (self.length(), embedded.size()[1]);
        let positions = Tensor::arange_start(start, start + block, (Kind::Int64, embedded.device())).unsqueeze(0);
        let mask = BlockMask::behind(start, block, &drafter.config, embedded.device());
        drafter.blocks(embedded, &positions, block, &mask, |layer| self.cache.layer(layer))
    }
}
