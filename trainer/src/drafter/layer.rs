//! One layer of the drafter.

use super::block::{KeysValues, attend};
use super::config::DrafterConfig;
use super::mask::BlockMask;
use crate::config::LayerType;
use crate::model::attention::{merge_heads, split_heads};
use crate::model::{Linear, Mlp, RmsNorm, Rope};
use tch::{Device, Kind, Tensor};

#[derive(Debug)]
pub(super) struct Layer {
    input_norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    mlp_norm: RmsNorm,
    mlp: Mlp,
}

/// How the rows of blocks are laid out.
pub(super) struct Rows<'a> {
    /// [b, Q]
    pub(super) positions: &'a Tensor,
    /// Tokens of a block.
    pub(super) block: i64,
    /// d
    pub(super) head_dim: i64,
}

impl Layer {
    pub(super) fn build<E, S: FnMut(&str, &[i64]) -> Result<Tensor, E>>(
        builder: &mut Builder<S>,
        c: &DrafterConfig,
        index: i64,
    ) -> Result<Self, E> {
        let (d, ffn, bias) = (c.hidden_size, c.intermediate_size, c.attention_bias);
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let p = format!("layers.{index}");
        Ok(Self {
            input_norm: builder.norm(&format!("{p}.input_layernorm"), d)?,
            q: builder.linear(&format!("{p}.self_attn.q_proj"), [q_width, d], bias)?,
            k: builder.linear(&format!("{p}.self_attn.k_proj"), [kv_width, d], bias)?,
            v: builder.linear(&format!("{p}.self_attn.v_proj"), [kv_width, d], bias)?,
            o: builder.linear(&format!("{p}.self_attn.o_proj"), [d, q_width], bias)?,
            q_norm: builder.norm(&format!("{p}.self_attn.q_norm"), c.head_dim)?,
            k_norm: builder.norm(&format!("{p}.self_attn.k_norm"), c.head_dim)?,
            mlp_norm: builder.norm(&format!("{p}.post_attention_layernorm"), d)?,
            mlp: Mlp {
                gate: builder.linear(&format!("{p}.mlp.gate_proj"), [ffn, d], false)?,
                up: builder.linear(&format!("{p}.mlp.up_proj"), [ffn, d], false)?,
                down: builder.linear(&format!("{p}.mlp.down_proj"), [d, ffn], false)?,
            },
        })
    }

    /// The same projections serve context features (not normed again) and blocks.
    pub(super) fn keys_values(
        &self,
        rows: &Tensor,
        rope: &Rope,
        positions: &Tensor,
        head_dim: i64,
    ) -> (Tensor, Tensor) {
        let k = rope.heads(&self.k.forward(rows), Some(&self.k_norm), positions);
        (k, split_heads(&self.v.forward(rows), head_dim))
    }

    pub(super) fn forward(
        &self,
        x: &Tensor,
        rope: &Rope,
        rows: &Rows<'_>,
        context: &KeysValues,
        seen: (&BlockMask, LayerType),
    ) -> Tensor {
        let h = self.input_norm.forward(x);
        let q = rope.heads(&self.q.forward(&h), Some(&self.q_norm), rows.positions);
        let own = self.keys_values(&h, rope, rows.positions, rows.head_dim);
        let out = attend(&q, context, &own, seen.0, seen.1, rows.block);
        let (x, h) = self.mlp_norm.after(x, &self.o.forward(&merge_heads(&out)));
        x + self.mlp.forward(&h)
    }
}

pub(super) struct Builder<S> {
    pub(super) source: S,
    pub(super) kind: Kind,
    pub(super) device: Device,
    pub(super) eps: f64,
    pub(super) made: Vec<(String, Tensor)>,
}

impl<E, S: FnMut(&str, &[i64]) -> Result<Tensor, E>> Builder<S> {
    fn tensor(&mut self, name: String, shape: &[i64]) -> Result<Tensor, E> {
        let tensor = (self.source)(&name, shape)?.to_device(self.device).to_kind(self.kind);
        self.made.push((name, tensor.shallow_clone()));
        Ok(tensor)
    }

    pub(super) fn linear(&mut self, name: &str, shape: [i64; 2], bias: bool) -> Result<Linear, E> {
        let weight = self.tensor(format!("{name}.weight"), &shape)?;
        let bias = if bias { Some(self.tensor(format!("{name}.bias"), &shape[..1])?) } else { None };
        Ok(Linear { weight, bias })
    }

    pub(super) fn norm(&mut self, name: &str, width: i64) -> Result<RmsNorm, E> {
        Ok(RmsNorm { weight: self.tensor(format!("{name}.weight"), &[width])?, eps: self.eps })
    }
}
