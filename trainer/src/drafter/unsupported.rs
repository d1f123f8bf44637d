//! What a drafter's config.json may ask for and this program does not compute: loaded in silence, it would be another drafter.

use crate::model::ModelError;
use serde_json::Value;
use std::path::Path;

/// Fields of other drafters of this kind, at the top or in `dflash_config`; whatever but null, false or 1 means them.
const OTHERS: [&str; 11] = [
    "attention_sink_bias",
    "attention_value_scale",
    "conv_group_size",
    "conv_kernel_size",
    "final_logit_softcapping",
    "output_multiplier",
    "projector_type",
    "sample_from_anchor",
    "selector_rank",
    "selector_top_k",
    "use_swa",
];

/// Refuses what would load and then compute something else.
pub(super) fn refuse(path: &Path, json: &Value) -> Result<(), ModelError> {
    if json["speculators_model_type"].is_string() {
        return unsupported(path, "the layout of speculators", "z-lab's layout");
    }
    let act = json["hidden_act"].as_str().unwrap_or("silu");
    if act != "silu" {
        return unsupported(path, format!("hidden_act \"{act}\""), "silu");
    }
    for field in ["rope_scaling", "rope_parameters"] {
        let kind = json[field]["rope_type"].as_str().or_else(|| json[field]["type"].as_str());
        if kind.is_some_and(|kind| kind != "default") {
            return unsupported(path, "rope_scaling", "a drafter without it");
        }
    }
    for (place, field) in [json, &json["dflash_config"]].into_iter().flat_map(|at| OTHERS.map(|field| (at, field))) {
        let value = &place[field];
        if !(value.is_null() || *value == Value::Bool(false) || value.as_f64() == Some(1.0)) {
            return unsupported(path, format!("{field} = {value}"), "a drafter without it");
        }
    }
    sizes_agree(path, json)?;
    causal(path, json)
}

/// Serving engines do not agree which of the two counts.
fn sizes_agree(path: &Path, json: &Value) -> Result<(), ModelError> {
    let (outer, inner) = (&json["block_size"], &json["dflash_config"]["block_size"]);
    if outer.is_null() || inner.is_null() || outer == inner {
        return Ok(());
    }
    let message = format!("`block_size` is {outer} and `dflash_config.block_size` {inner}: they must be equal");
    Err(ModelError::Config { path: path.into(), message })
}

/// One word for all layers; full ones always see their whole block here.
fn causal(path: &Path, json: &Value) -> Result<(), ModelError> {
    let types = json["layer_types"].as_array().map_or(&[][..], Vec::as_slice);
    let any_full = types.is_empty() || types.iter().any(|kind| kind == "full_attention");
    for (field, value) in [("is_causal", &json["is_causal"]), ("causal", &json["dflash_config"]["causal"])] {
        if *value == Value::Bool(true) && any_full {
            return unsupported(path, format!("{field} = true"), "full layers that see their whole block");
        }
    }
    Ok(())
}

fn unsupported(path: &Path, what: impl Into<String>, supported: &'static str) -> Result<(), ModelError> {
    Err(ModelError::Unsupported { path: path.into(), what: what.into(), supported })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(config: Value) -> String {
        refuse(Path::new("config.json"), &config).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn what_published_drafters_have_passes() {
        let own = json!({
            "hidden_act": "silu", "block_size": 16, "rope_scaling": null, "rope_parameters": { "rope_type": "default" },
            "dflash_config": { "block_size": 16, "causal": false }, "layer_types": ["full_attention"],
        });
        assert_eq!(said(own), "");
        assert_eq!(
            said(json!({ "dflash_config": { "block_size": 16, "use_swa": false, "output_multiplier": 1.0 } })),
            ""
        );
        assert_eq!(said(json!({ "dflash_config": { "causal": true }, "layer_types": ["sliding_attention"] })), "");
    }

    #[test]
    fn what_would_compute_something_else_is_named() {
        for (config, named) in [
            (json!({ "hidden_act": "gelu" }), "hidden_act \"gelu\" is not supported; supported: silu"),
            (json!({ "rope_scaling": { "type": "yarn", "factor": 4.0 } }), "rope_scaling is not supported"),
            (json!({ "rope_parameters": { "rope_type": "llama3" } }), "rope_scaling is not supported"),
            (
                json!({ "dflash_config": { "use_swa": true, "swa_window_size": 2048 } }),
                "use_swa = true is not supported",
            ),
            (json!({ "final_logit_softcapping": 30.0 }), "final_logit_softcapping = 30.0 is not supported"),
            (json!({ "dflash_config": { "projector_type": "domino" } }), "projector_type = \"domino\""),
            (json!({ "speculators_model_type": "dflash" }), "the layout of speculators is not supported"),
            (json!({ "block_size": 16, "dflash_config": { "block_size": 8 } }), "`block_size` is 16 and"),
            (json!({ "dflash_config": { "causal": true } }), "causal = true is not supported"),
            (json!({ "is_causal": true, "layer_types": ["full_attention"] }), "is_causal = true is not supported"),
        ] {
            let message = said(config);
            assert!(message.starts_with("config.json: ") && message.contains(named), "{message}");
        }
    }
}
