//! What a checkpoint was made from: the keys that decide its weights, and the target and texts by their hashes.

use crate::config::Config;
use crate::data::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Sections that say where and how a run works, not what it computes.
const ASIDE: [&str; 6] = ["pipeline", "profile", "eval", "checkpoint", "sim", "random"];

/// Keys of the other sections of which the same holds; files count by their content.
const ASIDE_KEYS: [&str; 11] = [
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
    "train.attention",
];

/// Keys that a user may change on purpose when a run goes on: the optimizer's state fits any of their values.
const ON_THE_WAY: [&str; 12] = [
    "train.steps",
    "train.learning_rate",
    "train.muon_learning_rate",
    "train.weight_decay",
    "train.muon_weight_decay",
    "train.schedule",
    "train.warmup",
    "train.decay",
    "train.decay_shape",
    "train.min_rate",
    "train.clip",
    "train.loss_chunk_blocks",
];

/// What decides a training's weights, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(BTreeMap<String, Value>);

impl Identity {
    /// Of a training by `config` on what `key` stands for, with so many drafters in all its processes.
    #[must_use]
    pub fn new(config: &Config, key: &Key, drafters: usize) -> Self {
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
        parts.insert("number of drafters".to_owned(), drafters.into());
        parts.extend(key.parts.iter().map(|(name, part)| (format!("prepared from {name}"), part.clone().into())));
        Self(parts)
    }

    /// What of it the processes of a training compare: the rest follows from the configuration.
    pub(crate) fn prepared(&self) -> BTreeMap<String, Value> {
        let prepared = self.0.iter().filter(|(name, _)| name.starts_with("prepared from "));
        prepared.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Every name with another value in `now`, with both; empty: they are the same. Of the keys that can be changed on the way,
    /// those that were `given` on purpose may differ.
    #[must_use]
    pub fn differences(&self, now: &Self, given: &[String]) -> String {
        let sentence = |name: &String| {
            let (was, is) = (shown(self.0.get(name)), shown(now.0.get(name)));
            let way =
                if on_the_way(name) { format!(" (--set {name}={is} changes it on purpose)") } else { String::new() };
            format!("{name} is {was} in the checkpoint and {is} now{way}")
        };
        self.differing(now).filter(|name| !changed(name, given)).map(sentence).collect::<Vec<_>>().join("; ")
    }

    /// A line for each key that was changed on purpose.
    #[must_use]
    pub fn changes(&self, now: &Self, given: &[String]) -> Vec<String> {
        let line = |name: &String| {
            format!("changed: {name} is {} from here on, {} before", shown(now.0.get(name)), shown(self.0.get(name)))
        };
        self.differing(now).filter(|name| changed(name, given)).map(line).collect()
    }

    fn differing<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a String> {
        let names = self.0.keys().chain(now.0.keys().filter(|name| !self.0.contains_key(*name)));
        names.filter(|name| self.0.get(*name) != now.0.get(*name) && !aside(name))
    }
}

/// Checkpoints of earlier versions hold such keys too.
fn aside(name: &str) -> bool {
    ASIDE_KEYS.contains(&name)
}

fn on_the_way(name: &str) -> bool {
    ON_THE_WAY.contains(&name)
}

fn changed(name: &str, given: &[String]) -> bool {
    on_the_way(name) && given.iter().any(|given| given == name)
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
        let there = Identity::new(&Config::default(), &key("aa"), 1);
        let mut config = Config::default();
        config.pipeline.hs_queue += 1;
        config.profile.log_every += 1;
        config.run.name = "other".to_owned();
        config.drafter.init = "where/it/lay".into();
        assert_eq!(there.differences(&Identity::new(&config, &key("aa"), 1), &[]), "");
        let mut older = there.clone();
        older.0.insert("drafter.init".to_owned(), "moved/since".into());
        assert_eq!(older.differences(&Identity::new(&config, &key("aa"), 1), &[]), "");
        config.train.batch = 9;
        config.train.steps = 7;
        let now = Identity::new(&config, &key("bb"), 1);
        let given = ["train.steps".to_owned(), "train.batch".to_owned()];
        assert_eq!(there.changes(&now, &given), ["changed: train.steps is 7 from here on, 1000 before"]);
        assert!(there.differences(&now, &[]).ends_with("7 now (--set train.steps=7 changes it on purpose)"));
        assert_eq!(
            there.differences(&now, &given),
            "prepared from model.safetensors is sha256 aa… in the checkpoint and sha256 bb… now; train.batch is 4 in the \
             checkpoint and 9 now"
        );
    }
}
