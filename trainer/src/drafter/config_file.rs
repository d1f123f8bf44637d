//! A drafter's config.json: what serving engines read, and what published drafters have.

use super::config::{DrafterConfig, Sliding};
use super::unsupported;
use crate::config::{LayerType, WindowRule};
use crate::model::ModelError;
use crate::model::files::read_text;
use crate::target::TargetConfig;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

impl DrafterConfig {
    /// config.json in z-lab's layout: `block_size` at both places, rotary fields in the older and the newer form.
    #[must_use]
    pub fn to_json(&self, target: &TargetConfig) -> Value {
        let mut json = json!({
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
            "layer_types": self.layer_types,
            "sliding_window": self.sliding.map(|s| s.window),
            "use_sliding_window": self.sliding.is_some(),
            "max_window_layers": self.layers,
            "max_position_embeddings": self.max_positions,
            "rope_theta": self.rope_theta,
            "rope_scaling": null,
            "tie_word_embeddings": false,
            "vocab_size": self.vocab_size,
            "bos_token_id": target.bos_token_id,
            "eos_token_id": target.eos_token_ids.first(),
            "dtype": "bfloat16",
            "torch_dtype": "bfloat16",
            "rope_parameters": { "rope_type": "default", "rope_theta": self.rope_theta },
            "use_cache": true,
        });
        if let Some(sliding) = self.sliding {
            note_rules(sliding, &mut json["dflash_config"]);
        }
        json
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

/// Only where it is not what everyone assumes: no published drafter has these keys.
fn note_rules(sliding: Sliding, json: &mut Value) {
    if !sliding.causal {
        json["sliding_window_non_causal"] = true.into();
        // As vLLM reads it, of z-lab's layout; full layers are not causal in any case.
        json["causal"] = false.into();
    }
    if sliding.rule == WindowRule::Anchor {
        json["sliding_window_rule"] = "anchor".into();
    }
}

struct Fields {
    path: PathBuf,
    json: Value,
}

impl Fields {
    fn read(&self) -> Result<DrafterConfig, ModelError> {
        unsupported::refuse(&self.path, &self.json)?;
        let j = &self.json;
        let heads = self.integer(&j["num_attention_heads"], "num_attention_heads", 1)?;
        let hidden_size = self.integer(&j["hidden_size"], "hidden_size", 1)?;
        let block = if j["block_size"].is_null() { &j["dflash_config"]["block_size"] } else { &j["block_size"] };
        let ids = j["dflash_config"]["target_layer_ids"].as_array().map(|l| l.iter().filter_map(Value::as_u64));
        let theta = j["rope_parameters"]["rope_theta"].as_f64().or_else(|| j["rope_theta"].as_f64());
        let layers = self.integer(&j["num_hidden_layers"], "num_hidden_layers", 1)?;
        let layer_types = self.layer_types(layers)?;
        Ok(DrafterConfig {
            hidden_size,
            intermediate_size: self.integer(&j["intermediate_size"], "intermediate_size", 1)?,
            layers,
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
            sliding: self.sliding(&layer_types)?,
            layer_types,
        })
    }

    /// One type a layer; where the file names none, all are full.
    fn layer_types(&self, layers: i64) -> Result<Vec<LayerType>, ModelError> {
        let given = &self.json["layer_types"];
        if given.is_null() {
            return Ok(vec![LayerType::FullAttention; layers as usize]);
        }
        let types: Vec<LayerType> = serde_json::from_value(given.clone()).map_err(|e| {
            self.error(&format!("field `layer_types` must hold \"full_attention\" and \"sliding_attention\": {e}"))
        })?;
        if types.len() as i64 == layers {
            return Ok(types);
        }
        Err(self.error(&format!("field `layer_types` has {} entries for {layers} layers", types.len())))
    }

    fn sliding(&self, types: &[LayerType]) -> Result<Option<Sliding>, ModelError> {
        if !types.contains(&LayerType::SlidingAttention) {
            return Ok(None);
        }
        let d = &self.json["dflash_config"];
        let own = &d["swa_window_size"];
        let window = if own.is_null() { &self.json["sliding_window"] } else { own };
        let rule = match d["sliding_window_rule"].as_str() {
            Some("anchor") => WindowRule::Anchor,
            _ => WindowRule::Slot,
        };
        let causal = d["sliding_window_non_causal"] != true && d["causal"] != false && self.json["is_causal"] != false;
        Ok(Some(Sliding { window: self.integer(window, "sliding_window", 1)?, rule, causal }))
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
