//! A layer of the target.

use super::loader::Loader;
use super::{Family, TargetConfig};
use crate::model::attention::{merge_heads, split_heads};
use crate::model::{Linear, Mlp, ModelError, RmsNorm, Rope};
use tch::Tensor;

/// A decoder layer.
#[derive(Debug)]
pub(super) struct Layer {
    input_norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    head_norms: Option<(RmsNorm, RmsNorm)>,
    mlp_norm: RmsNorm,
    mlp: Mlp,
}

impl Layer {
    pub(super) fn shared(&self) -> Self {
        Self {
            input_norm: self.input_norm.shared(),
            q: self.q.shared(),
            k: self.k.shared(),
            v: self.v.shared(),
            o: self.o.shared(),
            head_norms: self.head_norms.as_ref().map(|(q, k)| (q.shared(), k.shared())),
            mlp_norm: self.mlp_norm.shared(),
            mlp: self.mlp.shared(),
        }
    }

    pub(super) fn load(loader: &mut Loader, c: &TargetConfig, index: i64) -> Result<Self, ModelError> {
        let (d, ffn) = (c.hidden_size, c.intermediate_size);
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let bias = c.family == Family::Qwen2;
        let p = format!("model.layers.{index}");
        let head_norms = match c.family {
            Family::Qwen3 => Some((
                loader.norm(&format!("{p}.self_attn.q_norm"), c.head_dim)?,
                loader.norm(&format!("{p}.self_attn.k_norm"), c.head_dim)?,
            )),
            Family::Llama | Family::Qwen2 => None,
        };
        Ok(Self {
            input_norm: loader.norm(&format!("{p}.input_layernorm"), d)?,
            q: loader.linear(&format!("{p}.self_attn.q_proj"), [q_width, d], bias)?,
            k: loader.linear(&format!("{p}.self_attn.k_proj"), [kv_width, d], bias)?,
            v: loader.linear(&format!("{p}.self_attn.v_proj"), [kv_width, d], bias)?,
            o: loader.linear(&format!("{p}.self_attn.o_proj"), [d, q_width], false)?,
            head_norms,
            mlp_norm: loader.norm(&format!("{p}.post_attention_layernorm"), d)?,
            mlp: Mlp {
                gate: loader.linear(&format!("{p}.mlp.gate_proj"), [ffn, d], false)?,
                up: loader.linear(&format!("{p}.mlp.up_proj"), [ffn, d], false)?,
                down: loader.linear(&format!("{p}.mlp.down_proj"), [d, ffn], false)?,
            },
        })
    }

    pub(super) fn forward(
        &self,
        x: &Tensor,
        rope: &Rope,
        positions: &Tensor,
        head_dim: i64,
        attend: impl Fn(&Tensor, &Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        let h = self.input_norm.forward(x);
        let v = split_heads(&self.v.forward(&h), head_dim);
        let norms = self.head_norms.as_ref();
        let q = rope.heads(&self.q.forward(&h), norms.map(|n| &n.0), positions);
        let k = rope.heads(&self.k.forward(&h), norms.map(|n| &n.1), positions);
        let out = attend(&q, &k, &v);
        let (x, h) = self.mlp_norm.after(x, &self.o.forward(&merge_heads(&out)));
        x + self.mlp.forward(&h)
    }
}
