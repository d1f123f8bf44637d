//! What a checkpoint was made from: the keys that decide its weights, and the target and texts by their hashes.

use crate::config::Config;
use crate::data::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Sections that say where and how a run works, not what it computes.
const ASIDE: [&str; 6] = ["pipeline", "profile", "eval", "checkpoint", "sim", "random"];

/// Keys of the other sections of which the same holds; files count by their content.
const ASIDE_KEYS: [&str; 10] = [
    "run.dir",
    "run.name",
    "model.target",
    "model.dtype",
    "drafter.init",
    "data.prompts",
    "data.heldout",
    "data.shards",
    "data.generate_batch",
    "data.document_ids",
];

/// What decides a training's weights, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(BTreeMap<String, Value>);

impl Identity {
    /// Of a training by `config` on what `key` stands for.
    #[must_use]
    pub fn new(config: &Config, key: &Key) -> Self {
        let mut parts = BTreeMap::new();
        for (section, keys) in
            serde_json::to_value(config).ok().as_ref().and_then(Value::as_object).into_iter().flatten()
        {
            for (name, value) in keys.as_object().into_iter().flatten() {
                let name = format!("{section}.{name}");
                if !ASIDE.contains(&section.as_str()) && !aside(&name) {
                    parts.insert(name, value.clone());
                }
            }
        }
        // They share out a step's samples.
        parts.insert("number of drafters".to_owned(), config.pipeline.drafters().len().into());
        parts.extend(key.parts.iter().map(|(name, part)| (format!("prepared from {name}"), part.clone().into())));
        Self(parts)
    }

    /// Every name with another value in `now`, with both; empty: they are the same. `given` are keys that may differ.
    #[must_use]
    pub fn differences(&self, now: &Self, given: &[&str]) -> String {
        let names = self.0.keys().chain(now.0.keys().filter(|name| !self.0.contains_key(*name)));
        let differ =
            |name: &&String| self.0.get(*name) != now.0.get(*name) && !aside(name) && !given.contains(&name.as_str());
        let sentence = |name: &String| {
            format!("{name} is {} in the checkpoint and {} now", shown(self.0.get(name)), shown(now.0.get(name)))
        };
        names.filter(differ).map(sentence).collect::<Vec<_>>().join("; ")
    }
}

/// Checkpoints of earlier versions hold such keys too.
fn aside(name: &str) -> bool {
    ASIDE_KEYS.contains(&name)
}

/// Twelve digits tell two hashes apart.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    match value.as_str().and_then(|text| text.strip_prefix("sha256:")) {
        Some(hex) => format!("sha256 {}…", hex.get(..12).unwrap_or(hex)),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ContentKey;

    #[test]
    fn what_decides_the_weights_is_compared_and_the_rest_is_not() {
        let key = |target: &str| ContentKey::new().digest("model.safetensors", target).finish();
        let there = Identity::new(&Config::default(), &key("aa"));
        let mut config = Config::default();
        config.pipeline.hs_queue += 1;
        config.profile.log_every += 1;
        config.run.name = "other".to_owned();
        config.drafter.init = "where/it/lay".into();
        assert_eq!(there.differences(&Identity::new(&config, &key("aa")), &[]), "");
        let mut older = there.clone();
        older.0.insert("drafter.init".to_owned(), "moved/since".into());
        assert_eq!(older.differences(&Identity::new(&config, &key("aa")), &[]), "");
        config.train.batch = 9;
        config.train.steps = 7;
        let now = Identity::new(&config, &key("bb"));
        assert_eq!(
            there.differences(&now, &["train.steps"]),
            "prepared from model.safetensors is sha256 aa… in the checkpoint and sha256 bb… now; train.batch is 4 in the \
             checkpoint and 9 now"
        );
    }
}
