//! What all ranks must have in common, and where they differ.

use super::RanksError;
use crate::config::Config;
use serde_json::Value;
use std::collections::BTreeMap;

/// Names and values.
pub(crate) type Facts = BTreeMap<String, Value>;

/// Keys that each host has its own of. What paths lead to is compared by content, where it decides what is learnt.
const OWN: [&str; 13] = [
    "run.dir",
    "model.target",
    "data.prompts",
    "data.heldout",
    "data.shards",
    "pipeline.target_device",
    "pipeline.target_devices",
    "pipeline.drafter_device",
    "pipeline.drafter_devices",
    "pipeline.threads",
    "pipeline.hs_queue_bytes",
    "pipeline.feature_dir",
    "pipeline.feature_bytes",
];

/// The program and the configuration.
pub(crate) fn facts(config: &Config, commit: Option<&str>) -> Facts {
    let mut facts = Facts::new();
    facts.insert("the version of dflash".to_owned(), env!("CARGO_PKG_VERSION").into());
    facts.insert("the commit of dflash".to_owned(), commit.into());
    let sections = serde_json::to_value(config).unwrap_or_default();
    for (section, keys) in sections.as_object().into_iter().flatten() {
        for (key, value) in keys.as_object().into_iter().flatten() {
            let name = format!("{section}.{key}");
            if !OWN.contains(&name.as_str()) {
                facts.insert(name, value.clone());
            }
        }
    }
    facts
}

/// Refuses ranks that differ from rank 0, naming what differs.
pub(crate) fn compare(all: &[Facts]) -> Result<(), RanksError> {
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    let mut differences = Vec::new();
    for (rank, facts) in (1..).zip(others) {
        let names = first.keys().chain(facts.keys().filter(|name| !first.contains_key(*name)));
        for name in names.filter(|name| first.get(*name) != facts.get(*name)) {
            let (here, there) = (shown(first.get(name)), shown(facts.get(name)));
            differences.push(format!("{name} is {here} at rank 0 and {there} at rank {rank}"));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(RanksError::Differ { differences: differences.join("; ") }) }
}

fn shown(value: Option<&Value>) -> String {
    value.filter(|value| !value.is_null()).map_or("none".to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_values_and_both_ranks_are_named() {
        let mut config = Config::default();
        let here = facts(&config, Some("a"));
        config.pipeline.threads = 7;
        config.run.dir = "elsewhere".into();
        assert!(compare(&[here.clone(), facts(&config, Some("a"))]).is_ok());
        config.train.batch = 8;
        let error = compare(&[here.clone(), here, facts(&config, None)]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the ranks were not started alike: the commit of dflash is \"a\" at rank 0 and none at rank 2; train.batch is \
             4 at rank 0 and 8 at rank 2; start all of them with the same program and configuration"
        );
    }

    #[test]
    fn a_rank_of_another_version_is_refused_with_both_versions() {
        let here = facts(&Config::default(), Some("a"));
        let mut older = here.clone();
        older.insert("the version of dflash".to_owned(), "0.0.9".into());
        let error = compare(&[here, older]).unwrap_err().to_string();
        let version = env!("CARGO_PKG_VERSION");
        let told = format!("the version of dflash is \"{version}\" at rank 0 and \"0.0.9\" at rank 1");
        assert!(error.contains(&told), "{error}");
    }
}
