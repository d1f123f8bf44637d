//! A drafter's shape, and the config.json that serving engines read.

use crate::model::files::read_text;
use crate::model::{ModelError, RopeScaling};
use crate::target::TargetConfig;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A drafter's shape. Hidden size, heads and rotary positions are the target's.
#[derive(Clone, Debug, PartialEq)]
pub struct DrafterConfig {
    /// D
    pub hidden_size: i64,
    /// Width of the feed-forward layers.
    pub intermediate_size: i64,
    /// Number of layers.
    pub layers: i64,
    /// H
    pub heads: i64,
    /// G
    pub kv_heads: i64,
    /// d
    pub head_dim: i64,
    /// V
    pub vocab_size: i64,
    /// Added to the mean square in norms.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Biases on q, k, v and o.
    pub attention_bias: bool,
    /// Longest sequence, tokens.
    pub max_positions: i64,
    /// B: tokens of a block, the anchor included.
    pub block_size: i64,
    /// The token that stands for "to be predicted".
    pub mask_token_id: i64,
    /// Tapped target layers; id i = the output of layer i.
    pub target_layer_ids: Vec<usize>,
    /// Layers of the target.
    pub target_layers: i64,
    /// Standard deviation of the initial weights.
    pub initializer_range: f64,
}

/// The tapped layers of a target with `target_layers` layers, `count` of them (the paper's formula).
///
/// Rounds halves to even, as Python does: 30 layers tapped 5 times give 1, 8, 14, 20, 27.
#[must_use]
pub fn target_layer_ids(target_layers: usize, count: usize) -> Vec<usize> {
    if count == 1 {
        return vec![target_layers / 2];
    }
    let span = target_layers as f64 - 4.0;
    (0..count).map(|i| (1.0 + i as f64 * span / (count as f64 - 1.0)).round_ties_even().max(0.0) as usize).collect()
}

impl DrafterConfig {
    /// The shape of a drafter for a target.
    #[must_use]
    pub fn for_target(target: &TargetConfig, drafter: &crate::config::Drafter) -> Self {
        let taps = if drafter.taps == 0 { drafter.layers } else { drafter.taps };
        let ids = if drafter.target_layer_ids.is_empty() {
            target_layer_ids(target.layers as usize, taps)
        } else {
            drafter.target_layer_ids.clone()
        };
        Self {
            hidden_size: target.hidden_size,
            intermediate_size: target.intermediate_size,
            layers: drafter.layers as i64,
            heads: target.heads,
            kv_heads: target.kv_heads,
            head_dim: target.head_dim,
            vocab_size: target.vocab_size,
            rms_norm_eps: target.rms_norm_eps,
            rope_theta: target.rope_theta,
            attention_bias: false,
            max_positions: target.max_positions,
            block_size: drafter.block_size as i64,
            mask_token_id: drafter.mask_token_id,
            target_layer_ids: ids,
            target_layers: target.layers,
            initializer_range: drafter.initializer_range,
        }
    }

    /// Width of the concatenated taps: n · D.
    #[must_use]
    pub fn feature_width(&self) -> i64 {
        self.target_layer_ids.len() as i64 * self.hidden_size
    }

    /// Refuses a drafter that does not fit its target.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self, target: &TargetConfig, path: &Path) -> Result<(), ModelError> {
        let problem = if self.hidden_size != target.hidden_size {
            format!("hidden_size {} is not the target's {}", self.hidden_size, target.hidden_size)
        } else if self.vocab_size != target.vocab_size {
            format!("vocab_size {} is not the target's {}", self.vocab_size, target.vocab_size)
        } else if !(0..target.vocab_size).contains(&self.mask_token_id) {
            format!("mask_token_id {} lies outside the vocabulary 0..{}", self.mask_token_id, target.vocab_size)
        } else if let Some(id) = self.target_layer_ids.iter().find(|&&id| id as i64 >= target.layers) {
            format!("target_layer_ids: there is no layer {id}; the target has layers 0..{}", target.layers - 1)
        } else if self.target_layer_ids.is_empty() {
            "target_layer_ids is empty".to_owned()
        } else {
            return Ok(());
        };
        Err(ModelError::Config { path: path.into(), message: problem })
    }

    /// config.json in z-lab's layout: `block_size` at both places, rotary fields in the older form.
    #[must_use]
    pub fn to_json(&self, target: &TargetConfig) -> Value {
        json!({
            "architectures": ["DFlashDraftModel"],
            "model_type": "qwen3",
            "block_size": self.block_size,
            "dflash_config": {
                "block_size": self.block_size,
                "mask_token_id": self.mask_token_id,
                "target_layer_ids": self.target_layer_ids,
            },
            "num_target_layers": self.target_layers,
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": self.rms_norm_eps,
            "attention_bias": self.attention_bias,
            "attention_dropout": 0.0,
            "initializer_range": self.initializer_range,
            "layer_types": vec!["full_attention"; self.layers as usize],
            "sliding_window": null,
            "use_sliding_window": false,
            "max_window_layers": self.layers,
            "max_position_embeddings": self.max_positions,
            "rope_theta": self.rope_theta,
            "rope_scaling": null,
            "tie_word_embeddings": false,
            "vocab_size": self.vocab_size,
            "bos_token_id": target.bos_token_id,
            "eos_token_id": target.eos_token_ids.first(),
            "dtype": "bfloat16",
            "use_cache": true,
        })
    }

    /// Reads config.json of a drafter's directory, ours or z-lab's.
    ///
    /// # Errors
    /// The file is missing or unreadable, lacks a field, or asks for what is not supported.
    pub fn load(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let text = read_text(&path, "a drafter's directory holds config.json and model.safetensors")?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|e| ModelError::Config { path: path.clone(), message: format!("no JSON: {e}") })?;
        Fields { path, json }.read()
    }
}

struct Fields {
    path: PathBuf,
    json: Value,
}

impl Fields {
    fn read(&self) -> Result<DrafterConfig, ModelError> {
        self.refuse_unsupported()?;
        let j = &self.json;
        let heads = self.integer(&j["num_attention_heads"], "num_attention_heads", 1)?;
        let hidden_size = self.integer(&j["hidden_size"], "hidden_size", 1)?;
        let block = if j["block_size"].is_null() { &j["dflash_config"]["block_size"] } else { &j["block_size"] };
        let ids = j["dflash_config"]["target_layer_ids"].as_array().map(|l| l.iter().filter_map(Value::as_u64));
        let theta = j["rope_parameters"]["rope_theta"].as_f64().or_else(|| j["rope_theta"].as_f64());
        Ok(DrafterConfig {
            hidden_size,
            intermediate_size: self.integer(&j["intermediate_size"], "intermediate_size", 1)?,
            layers: self.integer(&j["num_hidden_layers"], "num_hidden_layers", 1)?,
            heads,
            kv_heads: j["num_key_value_heads"].as_i64().unwrap_or(heads),
            head_dim: j["head_dim"].as_i64().unwrap_or(hidden_size / heads),
            vocab_size: self.integer(&j["vocab_size"], "vocab_size", 1)?,
            rms_norm_eps: j["rms_norm_eps"].as_f64().unwrap_or(1e-6),
            rope_theta: theta.ok_or_else(|| self.error("field `rope_theta` is missing; write the target's"))?,
            attention_bias: j["attention_bias"].as_bool().unwrap_or(false),
            max_positions: j["max_position_embeddings"].as_i64().unwrap_or(4096),
            block_size: self.integer(block, "block_size", 2)?,
            mask_token_id: self.integer(&j["dflash_config"]["mask_token_id"], "dflash_config.mask_token_id", 0)?,
            target_layer_ids: ids
                .ok_or_else(|| self.error("field `dflash_config.target_layer_ids` is missing"))?
                .map(|id| id as usize)
                .collect(),
            target_layers: self.integer(&j["num_target_layers"], "num_target_layers", 1)?,
            initializer_range: j["initializer_range"].as_f64().unwrap_or(0.02),
        })
    }

    /// What would load and then compute something else.
    fn refuse_unsupported(&self) -> Result<(), ModelError> {
        let sliding = self.json["layer_types"].as_array().is_some_and(|l| l.iter().any(|t| t != "full_attention"));
        let scaled = self.json["rope_scaling"].is_object();
        let (what, supported) = match (sliding, scaled) {
            (true, _) => ("layer_types with sliding attention", "full_attention"),
            (_, true) => ("rope_scaling", "null"),
            _ => return Ok(()),
        };
        Err(ModelError::Unsupported { path: self.path.clone(), what: what.to_owned(), supported })
    }

    fn integer(&self, value: &Value, field: &str, least: i64) -> Result<i64, ModelError> {
        value
            .as_i64()
            .filter(|&v| v >= least)
            .ok_or_else(|| self.error(&format!("field `{field}` must be a whole number from {least}, found {value}")))
    }

    fn error(&self, message: &str) -> ModelError {
        ModelError::Config { path: self.path.clone(), message: message.to_owned() }
    }
}

/// A drafter's rotary positions are never scaled (a scaled target would be served with other positions).
pub(super) const ROPE_SCALING: RopeScaling = RopeScaling::Default;

#[cfg(test)]
mod tests {
    use super::target_layer_ids;

    #[test]
    fn tapped_layers_follow_the_papers_formula() {
        for (layers, ids) in [
            (24, [1, 6, 11, 16, 21]),
            (28, [1, 7, 13, 19, 25]),
            (30, [1, 8, 14, 20, 27]),
            (36, [1, 9, 17, 25, 33]),
            (40, [1, 10, 19, 28, 37]),
            (64, [1, 16, 31, 46, 61]),
        ] {
            assert_eq!(target_layer_ids(layers, 5), ids, "{layers} layers");
        }
        assert_eq!(target_layer_ids(30, 1), [15]);
    }
}
