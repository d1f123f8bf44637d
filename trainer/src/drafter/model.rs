//! The drafter's forward pass: queries from blocks, keys and values from context features and blocks.

use super::block::KeysValues;
use super::blocks::Blocks;
use super::config::{DrafterConfig, ROPE_SCALING};
use super::layer::{Builder, Layer, Rows};
use super::mask::BlockMask;
use super::noise::seeded;
use crate::config::MaskForm;
use crate::instrument::TorchStream;
use crate::model::{Linear, RmsNorm, Rope, linear};
use dflash_profiler::span;
use tch::{Device, Kind, Tensor};

/// A drafter. Embedding and head are the target's, frozen and shared; they are not here.
#[derive(Debug)]
pub struct DFlashDrafter {
    /// Its shape.
    pub config: DrafterConfig,
    /// The stream that its spans are timed on; `None`: on the host alone.
    pub stream: Option<TorchStream>,
    /// The context projection is computed tap by tap.
    pub split_fc: bool,
    /// How its attention is computed in training.
    pub mask: MaskForm,
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

impl DFlashDrafter {
    /// A fresh drafter: matrices normal with `initializer_range`, norms one, in float32 and then rounded to `kind`.
    #[must_use]
    pub fn fresh(config: &DrafterConfig, init: Init, kind: Kind, device: Device) -> Self {
        let std = config.initializer_range;
        let make = || {
            Self::build(config, kind, device, |name, shape| {
                let options = (Kind::Float, Device::Cpu);
                Ok::<_, std::convert::Infallible>(match (shape.len(), name) {
                    (1, "norm.weight") => Tensor::full(shape, init.final_norm, options),
                    (1, name) if name.ends_with("bias") => Tensor::zeros(shape, options),
                    (1, _) => Tensor::ones(shape, options),
                    _ => Tensor::randn(shape, options) * std,
                })
            })
        };
        let made = seeded(init.seed, make);
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
        Ok(Self {
            config: config.clone(),
            stream: None,
            split_fc: false,
            mask: MaskForm::Fused,
            fc,
            hidden_norm,
            layers,
            norm,
            rope,
            parameters: builder.made,
        })
    }

    /// Computed as the configuration asks for: other ways to the same numbers.
    #[must_use]
    pub fn computed(self, how: &crate::config::Drafter) -> Self {
        Self { split_fc: how.split_fc, mask: how.mask, ..self }
    }

    /// Where its weights are.
    #[must_use]
    pub fn device(&self) -> Device {
        self.parameters.first().map_or(Device::Cpu, |(_, weight)| weight.device())
    }

    /// The same drafter with weights of its own, on a device.
    #[must_use]
    pub fn copied_to(&self, device: Device) -> Self {
        let _guard = tch::no_grad_guard();
        let kind = self.parameters.first().map_or(Kind::Float, |(_, weight)| weight.kind());
        let mut weights = self.parameters.iter();
        // In the same order, as `build` promises.
        let built = Self::build(&self.config, kind, device, |_, _| {
            let weight = weights.next().map_or_else(Tensor::new, |(_, weight)| weight.detach().copy());
            Ok::<_, std::convert::Infallible>(weight)
        });
        match built {
            Ok(copy) => Self { split_fc: self.split_fc, mask: self.mask, ..copy },
            Err(never) => match never {},
        }
    }

    /// The drafter that an export of this one holds, whose weights are bfloat16; in a target's arithmetic, on its device.
    #[must_use]
    pub fn as_served(&self, kind: Kind, device: Device) -> Self {
        let _guard = tch::no_grad_guard();
        let mut weights = self.parameters.iter();
        let built = Self::build(&self.config, kind, device, |_, _| {
            let weight = weights.next().map_or_else(Tensor::new, |(_, weight)| weight.detach().to_kind(Kind::BFloat16));
            Ok::<_, std::convert::Infallible>(weight)
        });
        match built {
            Ok(served) => Self { split_fc: self.split_fc, mask: self.mask, ..served },
            Err(never) => match never {},
        }
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
        self.hidden_norm.forward(&if self.split_fc { self.split(taps) } else { self.fc.forward(taps) })
    }

    /// The projection as a sum of one product a tap.
    fn split(&self, taps: &Tensor) -> Tensor {
        let d = self.config.hidden_size;
        let part = |i: i64| {
            let weight = self.fc.weight.narrow(1, i * d, d);
            linear(&taps.narrow(-1, i * d, d), &weight, None)
        };
        (1..self.config.target_layer_ids.len() as i64).fold(part(0), |sum, i| sum + part(i))
    }

    /// A layer's keys and values of context features ctx [b, S, D] at `positions` `[S]` or [b, S]: [b, G, S, d] each.
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
        mask: &BlockMask,
        context: impl Fn(usize) -> (Tensor, Tensor),
    ) -> Tensor {
        let mut x = embedded.shallow_clone();
        for i in 0..self.layers.len() {
            x = self.layer(i, &x, positions, block, mask, &context(i));
        }
        self.norm.forward(&x)
    }

    /// One layer.
    pub(super) fn layer(
        &self,
        index: usize,
        x: &Tensor,
        positions: &Tensor,
        block: i64,
        mask: &BlockMask,
        context: &KeysValues,
    ) -> Tensor {
        let _span = span!("drafter.layer", &self.stream, index = index);
        let own = Rows { positions, block, head_dim: self.config.head_dim };
        self.layers[index].forward(x, &self.rope, &own, context, (mask, self.config.layer_types[index]))
    }

    /// The final norm.
    pub(super) fn last(&self, x: &Tensor) -> Tensor {
        self.norm.forward(x)
    }

    /// A training forward: taps [b, S, n·D], embedded blocks [b, N·B, D] -> [b, N·B, D].
    pub fn forward(&self, taps: &Tensor, embedded: &Tensor, blocks: &Blocks, mask: &BlockMask) -> Tensor {
        let ctx = self.context(taps);
        let rows = blocks.context_positions(ctx.size()[1]);
        self.blocks(embedded, &blocks.positions, self.config.block_size, mask, |layer| {
            self.context_kv(layer, &ctx, &rows)
        })
    }
}
