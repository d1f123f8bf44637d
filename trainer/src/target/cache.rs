//! Keys and values of what has been read, so that it need not be read again.

use tch::{Device, Kind, Tensor};

/// A cache of fixed capacity for every layer: [b, G, capacity, d] each for keys and values.
///
/// Rows are written in place; going back is only a shorter length.
#[derive(Debug)]
pub struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
    length: i64,
    capacity: i64,
}

impl KvCache {
    /// An empty cache; `shape` = [b, G, capacity, d].
    #[must_use]
    pub fn new(layers: i64, shape: [i64; 4], kind: Kind, device: Device) -> Self {
        let empty = || Tensor::zeros(shape, (kind, device));
        Self { layers: (0..layers).map(|_| (empty(), empty())).collect(), length: 0, capacity: shape[2] }
    }

    /// Rows that are valid.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.length
    }

    /// Rows that fit.
    #[must_use]
    pub fn capacity(&self) -> i64 {
        self.capacity
    }

    /// Writes new rows k, v [b, G, Q, d] behind the valid ones and returns all of the layer's, [b, G, length + Q, d].
    ///
    /// The length changes only by [`KvCache::advance`], once all layers have written.
    #[must_use]
    pub fn extend(&self, layer: usize, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        let rows = k.size()[2];
        let (keys, values) = &self.layers[layer];
        keys.narrow(2, self.length, rows).copy_(k);
        values.narrow(2, self.length, rows).copy_(v);
        (keys.narrow(2, 0, self.length + rows), values.narrow(2, 0, self.length + rows))
    }

    /// The valid rows of a layer, [b, G, length, d].
    #[must_use]
    pub fn layer(&self, layer: usize) -> (Tensor, Tensor) {
        let (keys, values) = &self.layers[layer];
        (keys.narrow(2, 0, self.length), values.narrow(2, 0, self.length))
    }

    /// Counts `rows` written rows as valid.
    pub fn advance(&mut self, rows: i64) {
        self.length += rows;
    }

    /// Forgets what lies behind the first `length` rows.
    pub fn crop(&mut self, length: i64) {
        self.length = self.length.min(length);
    }

    /// Keeps some sequences of the batch; `rows` [kept] (Int64).
    pub fn select(&mut self, rows: &Tensor) {
        for (keys, values) in &mut self.layers {
            *keys = keys.index_select(0, rows);
            *values = values.index_select(0, rows);
        }
    }
}
