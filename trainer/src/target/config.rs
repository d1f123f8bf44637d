//! config.json of a target, in transformers' older and newer form.

use crate::model::files::read_text;
use crate::model::rope::Llama3;
use crate::model::{ModelError, RopeScaling};
use serde_json::Value;
use std::path::{Path, PathBuf};

const SUPPORTED: &str = "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM";

/// What tells the supported architectures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Neither biases nor head norms.
    Llama,
    /// Biases on q, k and v.
    Qwen2,
    /// Norms on the heads of q and k.
    Qwen3,
}

/// A target's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetConfig {
    /// Architecture.
    pub family: Family,
    /// D
    pub hidden_size: i64,
    /// Width of the feed-forward layers.
    pub intermediate_size: i64,
    /// Number of decoder layers.
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
    /// Stretching of the rotary frequencies.
    pub rope_scaling: RopeScaling,
    /// Longest sequence, tokens.
    pub max_positions: i64,
    /// The head is the embedding.
    pub tied: bool,
    /// Token that begins a text, if the file names one.
    pub bos_token_id: Option<i64>,
    /// Tokens that end an answer.
    pub eos_token_ids: Vec<i64>,
}

impl TargetConfig {
    /// Reads `config.json` of a model's directory.
    ///
    /// # Errors
    /// The file is missing or unreadable, lacks a field, or describes an unsupported model.
    pub fn load(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let text =
            read_text(&path, "give a Hugging Face directory with config.json, model.safetensors and tokenizer.json")?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|e| ModelError::Config { path: path.clone(), message: format!("no JSON: {e}") })?;
        Fields { path, json }.read()
    }
}

/// Access to fields with errors that name file and field.
struct Fields {
    path: PathBuf,
    json: Value,
}

impl Fields {
    fn read(&self) -> Result<TargetConfig, ModelError> {
        let family = self.family()?;
        let heads = self.integer("num_attention_heads")?;
        let hidden_size = self.integer("hidden_size")?;
        let act = self.json["hidden_act"].as_str().unwrap_or("silu");
        if act != "silu" {
            return Err(self.unsupported(format!("hidden_act \"{act}\""), "silu"));
        }
        self.refuse_unread(family)?;
        Ok(TargetConfig {
            family,
            hidden_size,
            intermediate_size: self.integer("intermediate_size")?,
            layers: self.integer("num_hidden_layers")?,
            heads,
            kv_heads: self.json["num_key_value_heads"].as_i64().unwrap_or(heads),
            head_dim: self.json["head_dim"].as_i64().unwrap_or(hidden_size / heads),
            vocab_size: self.integer("vocab_size")?,
            rms_norm_eps: self.json["rms_norm_eps"].as_f64().unwrap_or(1e-6),
            rope_theta: self.rope_theta(),
            rope_scaling: self.rope_scaling()?,
            max_positions: self.json["max_position_embeddings"].as_i64().unwrap_or(4096),
            tied: self.json["tie_word_embeddings"].as_bool().unwrap_or(false),
            bos_token_id: self.json["bos_token_id"].as_i64(),
            eos_token_ids: integers(&self.json["eos_token_id"]),
        })
    }

    fn family(&self) -> Result<Family, ModelError> {
        let name = self.json["architectures"][0].as_str().unwrap_or("(none given)");
        match name {
            "LlamaForCausalLM" => Ok(Family::Llama),
            "Qwen2ForCausalLM" => Ok(Family::Qwen2),
            "Qwen3ForCausalLM" => Ok(Family::Qwen3),
            other => Err(self.unsupported(format!("architecture {other}"), SUPPORTED)),
        }
    }

    /// What would be left out silently: a bias that is not loaded, a window, weights that stand for others.
    fn refuse_unread(&self, family: Family) -> Result<(), ModelError> {
        for key in ["attention_bias", "mlp_bias"] {
            if self.json[key].as_bool() == Some(true) && !(family == Family::Qwen2 && key == "attention_bias") {
                return Err(self.unsupported(format!("{key} = true"), "models without it"));
            }
        }
        let slides = |kind: &Value| kind != "full_attention";
        let types = self.json["layer_types"].as_array();
        if self.json["use_sliding_window"].as_bool() == Some(true) || types.is_some_and(|t| t.iter().any(slides)) {
            return Err(self.unsupported("a layer with sliding attention".to_owned(), "full attention"));
        }
        if self.json["quantization_config"].is_object() {
            return Err(self.unsupported("quantization_config".to_owned(), "weights in F32, F16 or BF16"));
        }
        Ok(())
    }

    fn integer(&self, field: &str) -> Result<i64, ModelError> {
        match self.json[field].as_i64() {
            Some(value) if value > 0 => Ok(value),
            _ => Err(ModelError::Config {
                path: self.path.clone(),
                message: format!("field `{field}` must be a whole number above 0, found {}", self.json[field]),
            }),
        }
    }

    /// transformers 5 nests rotary fields in `rope_parameters`; before, they stood at the top.
    fn rope_theta(&self) -> f64 {
        let nested = self.json["rope_parameters"]["rope_theta"].as_f64();
        nested.or_else(|| self.json["rope_theta"].as_f64()).unwrap_or(10_000.0)
    }

    fn rope_scaling(&self) -> Result<RopeScaling, ModelError> {
        let nested = &self.json["rope_parameters"];
        let scaling = if nested.is_object() { nested } else { &self.json["rope_scaling"] };
        let kind = scaling["rope_type"].as_str().or_else(|| scaling["type"].as_str()).unwrap_or("default");
        match kind {
            "default" => Ok(RopeScaling::Default),
            "linear" => scaling["factor"].as_f64().map(|factor| RopeScaling::Linear { factor }).ok_or_else(|| {
                ModelError::Config { path: self.path.clone(), message: "linear rope_scaling needs `factor`".to_owned() }
            }),
            "llama3" => serde_json::from_value::<Llama3>(scaling.clone()).map(RopeScaling::Llama3).map_err(|e| {
                ModelError::Config { path: self.path.clone(), message: format!("llama3 rope_scaling: {e}") }
            }),
            other => Err(self.unsupported(format!("rope_scaling \"{other}\""), "default, linear, llama3")),
        }
    }

    fn unsupported(&self, what: String, supported: &'static str) -> ModelError {
        ModelError::Unsupported { path: self.path.clone(), what, supported }
    }
}

fn integers(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_i64).collect(),
        other => other.as_i64().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Qwen2 with a change.
    fn read(field: &str, value: Value) -> Result<TargetConfig, String> {
        let mut json = json!({
            "architectures": ["Qwen2ForCausalLM"], "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2,
            "num_attention_heads": 2, "vocab_size": 10, "use_sliding_window": false, "sliding_window": 4096,
            "layer_types": ["full_attention", "full_attention"], "attention_bias": true,
        });
        json[field] = value;
        Fields { path: "config.json".into(), json }.read().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_computed_is_refused_and_what_there_is_is_named() {
        assert!(read("sliding_window", Value::Null).is_ok());
        let types = json!(["full_attention", "sliding_attention"]);
        for (field, value, named) in [
            (
                "architectures",
                json!(["GemmaForCausalLM"]),
                "supported: LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM",
            ),
            ("architectures", json!(["Qwen3ForCausalLM"]), "attention_bias = true is not supported"),
            ("hidden_act", json!("gelu"), "hidden_act \"gelu\" is not supported; supported: silu"),
            ("mlp_bias", json!(true), "mlp_bias = true is not supported"),
            ("use_sliding_window", json!(true), "sliding attention is not supported; supported: full attention"),
            ("layer_types", types, "sliding attention is not supported; supported: full attention"),
            ("quantization_config", json!({ "bits": 4 }), "supported: weights in F32, F16 or BF16"),
            ("rope_scaling", json!({ "rope_type": "yarn" }), "supported: default, linear, llama3"),
            ("rope_parameters", json!({ "rope_type": "dynamic" }), "supported: default, linear, llama3"),
            ("vocab_size", json!(0), "`vocab_size` must be a whole number above 0"),
        ] {
            let message = read(field, value).unwrap_err();
            assert!(message.starts_with("config.json: ") && message.contains(named), "{field}: {message}");
        }
    }
}
