//! Keys and values of what has been read, so that it need not be read again.

use tch::{Device, Kind, Tensor};

/// Rows by which a cache grows.
const CHUNK: i64 = 32;

/// A cache for every layer: [b, G, capacity, d] each for keys and values.
///
/// Rows are written in place; going back is only a shorter length. The capacity is a little above the length, and readers
/// get all of it: a part of it would have gaps between its heads, over which products are slow. A mask must hide the rows
/// behind the valid ones (they are finite).
#[derive(Debug)]
pub struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
    length: i64,
    capacity: i64,
}

impl KvCache {
    /// An empty cache with room for `rows` rows; `shape` = [b, G, d].
    #[must_use]
    pub fn new(layers: i64, [batch, groups, dim]: [i64; 3], rows: i64, kind: Kind, device: Device) -> Self {
        let capacity = rounded(rows);
        let empty = || Tensor::zeros([batch, groups, capacity, dim], (kind, device));
        Self { layers: (0..layers).map(|_| (empty(), empty())).collect(), length: 0, capacity }
    }

    /// Rows that are valid.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.length
    }

    /// Rows that [`KvCache::extend`] returns: what a mask must cover.
    #[must_use]
    pub fn capacity(&self) -> i64 {
        self.capacity
    }

    /// Makes room for `rows` further rows.
    pub fn reserve(&mut self, rows: i64) {
        let wanted = rounded(self.length + rows);
        if wanted <= self.capacity {
            return;
        }
        let more = [0, 0, 0, wanted - self.capacity];
        for (keys, values) in &mut self.layers {
            *keys = keys.constant_pad_nd(more);
            *values = values.constant_pad_nd(more);
        }
        self.capacity = wanted;
    }

    /// Writes new rows k, v [b, G, Q, d], for which there must be room, behind the valid ones and returns all of the
    /// layer's rows, [b, G, capacity, d].
    ///
    /// The length changes only by [`KvCache::advance`], once all layers have written.
    pub fn extend(&self, layer: usize, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        let rows = k.size()[2];
        let (keys, values) = &self.layers[layer];
        keys.narrow(2, self.length, rows).copy_(k);
        values.narrow(2, self.length, rows).copy_(v);
        (keys.shallow_clone(), values.shallow_clone())
    }

    /// The valid rows of a layer, [b, G, length, d].
    pub fn layer(&self, layer: usize) -> (Tensor, Tensor) {
        let (keys, values) = &self.layers[layer];
        (keys.narrow(2, 0, self.length), values.narrow(2, 0, self.length))
    }

    /// A cache of `count` of the sequences, from `first`, that writes into this one's memory.
    #[must_use]
    pub fn rows(&self, first: i64, count: i64) -> Self {
        let part = |(k, v): &(Tensor, Tensor)| (k.narrow(0, first, count), v.narrow(0, first, count));
        Self { layers: self.layers.iter().map(part).collect(), ..*self }
    }

    /// Counts `rows` written rows as valid.
    pub fn advance(&mut self, rows: i64) {
        self.length += rows;
    }

    /// Forgets what lies behind the first `length` rows.
    pub fn crop(&mut self, length: i64) {
        self.length = self.length.min(length);
    }

    /// Keeps some sequences of the batch; `rows` `[kept]` (Int64).
    pub fn select(&mut self, rows: &Tensor) {
        for (keys, values) in &mut self.layers {
            *keys = keys.index_select(0, rows);
            *values = values.index_select(0, rows);
        }
    }
}

fn rounded(rows: i64) -> i64 {
    (rows + CHUNK - 1) / CHUNK * CHUNK
}
