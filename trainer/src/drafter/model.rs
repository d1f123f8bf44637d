//! The drafter's forward pass: queries from blocks, keys and values from context features and blocks.

use super::block::{BlockMask, attend};
use super::config::{DrafterConfig, ROPE_SCALING};
use crate::instrument::TorchStream;
use crate::model::attention::{merge_heads, split_heads};
use crate::model::{Linear, Mlp, RmsNorm, Rope};
use dflash_profiler::span;
use tch::{Device, Kind, Tensor};

/// A drafter. Embedding and head are the target's, frozen and shared; they are not here.
#[derive(Debug)]
pub struct DFlashDrafter {
    /// Its shape.
    pub config: DrafterConfig,
    /// The stream that its spans are timed on; `None`: on the host alone.
    pub stream: Option<TorchStream>,
    fc: Linear,
    hidden_norm: RmsNorm,
    layers: Vec<Layer>,
    norm: RmsNorm,
    rope: Rope,
    parameters: Vec<(String, Tensor)>,
}

/// How a fresh drafter begins.
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// Seed of the weights.
    pub seed: i64,
    /// Weight of the last norm.
    pub final_norm: f64,
}

#[derive(Debug)]
struct Layer {
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
struct Rows<'a> {
    /// [b, Q]
    positions: &'a Tensor,
    /// Tokens of a block.
    block: i64,
    /// d
    head_dim: i64,
}

impl DFlashDrafter {
    /// A fresh drafter: matrices normal with `initializer_range`, norms one, in float32 and then rounded to `kind`.
    #[must_use]
    pub fn fresh(config: &DrafterConfig, init: Init, kind: Kind, device: Device) -> Self {
        tch::manual_seed(init.seed);
        let std = config.initializer_range;
        let made = Self::build(config, kind, device, |name, shape| {
            let options = (Kind::Float, Device::Cpu);
            Ok::<_, std::convert::Infallible>(match (shape.len(), name) {
                (1, "norm.weight") => Tensor::full(shape, init.final_norm, options),
                (1, name) if name.ends_with("bias") => Tensor::zeros(shape, options),
                (1, _) => Tensor::ones(shape, options),
                _ => Tensor::randn(shape, options) * std,
            })
        });
        match made {
            Ok(drafter) => drafter,
            Err(never) => match never {},
        }
    }

    /// Builds a drafter from a source of tensors by name and shape, in the order of [`DFlashDrafter::parameters`].
    ///
    /// # Errors
    /// Whatever the source returns.
    pub fn build<E>(
        config: &DrafterConfig,
        kind: Kind,
        device: Device,
        source: impl FnMut(&str, &[i64]) -> Result<Tensor, E>,
    ) -> Result<Self, E> {
        let mut builder = Builder { source, kind, device, eps: config.rms_norm_eps, made: Vec::new() };
        let d = config.hidden_size;
        let fc = builder.linear("fc", [d, config.feature_width()], false)?;
        let hidden_norm = builder.norm("hidden_norm", d)?;
        let layers = (0..config.layers).map(|i| Layer::build(&mut builder, config, i)).collect::<Result<_, E>>()?;
        let norm = builder.norm("norm", d)?;
        let rope = Rope::new(config.head_dim, config.rope_theta, &ROPE_SCALING, config.max_positions, kind, device);
        Ok(Self { config: config.clone(), stream: None, fc, hidden_norm, layers, norm, rope, parameters: builder.made })
    }

    /// Every weight by its name in the checkpoint; the tensors share memory with the model's.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.parameters
    }

    /// Makes every weight a leaf whose gradient backward fills.
    pub fn require_gradients(&self) {
        for (_, tensor) in &self.parameters {
            let _ = tensor.set_requires_grad(true);
        }
    }

    /// Context features from concatenated taps: [b, S, n·D] -> [b, S, D].
    pub fn context(&self, taps: &Tensor) -> Tensor {
        let _span = span!("drafter.fc", &self.stream);
        self.hidden_norm.forward(&self.fc.forward(taps))
    }

    /// A layer's keys and values of context features ctx [b, S, D] at `positions` `[S]`: [b, G, S, d] each.
    pub fn context_kv(&self, layer: usize, ctx: &Tensor, positions: &Tensor) -> (Tensor, Tensor) {
        self.layers[layer].keys_values(ctx, &self.rope, positions, self.config.head_dim)
    }

    /// Blocks of `block` tokens through all layers: embedded [b, Q, D] with Q = N · block, their positions [b, Q];
    /// `context` gives a layer's keys and values -> [b, Q, D] after the final norm.
    pub fn blocks(
        &self,
        embedded: &Tensor,
        positions: &Tensor,
        block: i64,
        mask: Option<&BlockMask>,
        context: impl Fn(usize) -> (Tensor, Tensor),
    ) -> Tensor {
        let mut x = embedded.shallow_clone();
        for (i, layer) in self.layers.iter().enumerate() {
            let _span = span!("drafter.layer", &self.stream, index = i);
            let (k, v) = context(i);
            let own = Rows { positions, block, head_dim: self.config.head_dim };
            x = layer.forward(&x, &self.rope, &own, (&k, &v), mask);
        }
        self.norm.forward(&x)
    }

    /// A training forward: taps [b, S, n·D], embedded blocks [b, N·B, D], their positions [b, N·B] -> [b, N·B, D].
    pub fn forward(&self, taps: &Tensor, embedded: &Tensor, positions: &Tensor, mask: &BlockMask) -> Tensor {
        let ctx = self.context(taps);
        let rows = Tensor::arange(ctx.size()[1], (Kind::Int64, ctx.device()));
        self.blocks(embedded, positions, self.config.block_size, Some(mask), |layer| {
            self.context_kv(layer, &ctx, &rows)
        })
    }
}

impl Layer {
    fn build<E, S: FnMut(&str, &[i64]) -> Result<Tensor, E>>(
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
    fn keys_values(&self, rows: &Tensor, rope: &Rope, positions: &Tensor, head_dim: i64) -> (Tensor, Tensor) {
        let k = self.k_norm.forward(&split_heads(&self.k.forward(rows), head_dim));
        (rope.apply(&k, positions), split_heads(&self.v.forward(rows), head_dim))
    }

    fn forward(
        &self,
        x: &Tensor,
        rope: &Rope,
        rows: &Rows<'_>,
        context: (&Tensor, &Tensor),
        mask: Option<&BlockMask>,
    ) -> Tensor {
        let h = self.input_norm.forward(x);
        let q = self.q_norm.forward(&split_heads(&self.q.forward(&h), rows.head_dim));
        let (k, v) = self.keys_values(&h, rope, rows.positions, rows.head_dim);
        let out = attend(&rope.apply(&q, rows.positions), context, (&k, &v), mask, rows.block);
        let x = x + self.o.forward(&merge_heads(&out));
        &x + self.mlp.forward(&self.mlp_norm.forward(&x))
    }
}

struct Builder<S> {
    source: S,
    kind: Kind,
    device: Device,
    eps: f64,
    made: Vec<(String, Tensor)>,
}

impl<E, S: FnMut(&str, &[i64]) -> Result<Tensor, E>> Builder<S> {
    fn tensor(&mut self, name: String, shape: &[i64]) -> Result<Tensor, E> {
        let tensor = (self.source)(&name, shape)?.to_device(self.device).to_kind(self.kind);
        self.made.push((name, tensor.shallow_clone()));
        Ok(tensor)
    }

    fn linear(&mut self, name: &str, shape: [i64; 2], bias: bool) -> Result<Linear, E> {
        let weight = self.tensor(format!("{name}.weight"), &shape)?;
        let bias = if bias { Some(self.tensor(format!("{name}.bias"), &shape[..1])?) } else { None };
        Ok(Linear { weight, bias })
    }

    fn norm(&mut self, name: &str, width: i64) -> Result<RmsNorm, E> {
        Ok(RmsNorm { weight: self.tensor(format!("{name}.weight"), &[width])?, eps: self.eps })
    }
}
