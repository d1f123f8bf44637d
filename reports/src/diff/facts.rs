//! Where and how the runs ran: hardware, driver, config, commit. What differs is named; with a different machine or a
//! different config, a difference in time says nothing of the program.

use super::side::Side;
use dflash_timeline::Manifest;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of the config that say where things lie and how a run is called.
const NAMES: [&str; 2] = ["run.name", "run.dir"];

/// What run.json says of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunFacts {
    hardware: String,
    host: String,
    driver: Option<String>,
    version: String,
    commit: Option<String>,
    config: BTreeMap<String, String>,
}

/// One thing that should be the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// `hardware`, `host`, `driver`, `version`, `commit`, `config`, or a key of the config as `config train.batch`.
    pub what: String,
    /// Side A's, several runs' joined; `None` if it is not known.
    pub a: Option<String>,
    /// Side B's.
    pub b: Option<String>,
    /// Whether the two are known and differ.
    pub differs: bool,
    /// Whether such a difference makes the sides incomparable (`--strict`).
    pub matters: bool,
}

impl RunFacts {
    pub(super) fn of(manifest: &Manifest, driver: Option<String>) -> Self {
        let mut config = BTreeMap::new();
        flatten("", &manifest.config, &mut config);
        NAMES.iter().for_each(|name| drop(config.remove(*name)));
        Self {
            hardware: hardware(&manifest.gpus),
            host: manifest.host.clone(),
            driver,
            version: manifest.version.clone(),
            commit: manifest.commit.clone(),
            config,
        }
    }
}

/// `2 × NVIDIA H200`.
fn hardware(gpus: &[String]) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    gpus.iter().for_each(|gpu| *counts.entry(gpu).or_default() += 1);
    let names: Vec<String> = counts.iter().map(|(gpu, count)| format!("{count} × {gpu}")).collect();
    if names.is_empty() { "no GPU".into() } else { names.join(", ") }
}

/// A tree of keys as `train.batch`.
fn flatten(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            flatten(&key, value, into);
        }),
        Value::Null => {}
        Value::String(text) => drop(into.insert(prefix.to_owned(), text.clone())),
        other => drop(into.insert(prefix.to_owned(), other.to_string())),
    }
}

/// Everything that should be the same, the config key by key where it differs.
pub(super) fn compare(a: &Side, b: &Side) -> Vec<Fact> {
    let plain = |what: &str, matters, of: &dyn Fn(&RunFacts) -> Option<String>| {
        fact(what, matters, values(a, of), values(b, of))
    };
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let mut facts = vec![
        plain("hardware", true, &|f| text(&f.hardware)),
        plain("host", false, &|f| text(&f.host)),
        plain("driver", true, &|f| f.driver.clone()),
        plain("version", false, &|f| text(&f.version)),
        plain("commit", false, &|f| f.commit.clone()),
    ];
    let keys: BTreeSet<&String> = [a, b].into_iter().flat_map(known).flat_map(|facts| facts.config.keys()).collect();
    let (all_a, all_b) = (known(a).count() > 0, known(b).count() > 0);
    let mut same = 0;
    for key in keys.into_iter().filter(|_| all_a && all_b) {
        let of = |f: &RunFacts| Some(f.config.get(key).cloned().unwrap_or_else(|| "not set".into()));
        let fact = fact(&format!("config {key}"), key != "run.seed", values(a, &of), values(b, &of));
        if fact.differs { facts.push(fact) } else { same += 1 }
    }
    let count = |known: bool| known.then(|| format!("{same} keys alike"));
    facts.push(fact("config", false, count(all_a), count(all_b)));
    facts
}

fn known(side: &Side) -> impl Iterator<Item = &RunFacts> {
    side.runs.iter().filter_map(|run| run.facts.as_ref())
}

/// What the runs of a side say, each thing once; `None` if one of them does not know.
fn values(side: &Side, of: &dyn Fn(&RunFacts) -> Option<String>) -> Option<String> {
    let values: Option<BTreeSet<String>> = side.runs.iter().map(|run| run.facts.as_ref().and_then(of)).collect();
    values.filter(|values| !values.is_empty()).map(|values| values.into_iter().collect::<Vec<_>>().join(", "))
}

fn fact(what: &str, matters: bool, a: Option<String>, b: Option<String>) -> Fact {
    let differs = a.is_some() && b.is_some() && a != b;
    Fact { what: what.to_owned(), a, b, differs, matters: differs && matters }
}

#[cfg(test)]
mod tests {
    use super::{RunFacts, compare};
    use crate::diff::side::{RunSeries, Side};
    use dflash_timeline::Manifest;

    fn side(gpus: &[&str], batch: u32, seed: u32) -> Side {
        let mut manifest = Manifest::default();
        manifest.gpus = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        manifest.config =
            serde_json::json!({"run": {"name": "x", "seed": seed}, "train": {"batch": batch, "steps": 5}});
        let facts = Some(RunFacts::of(&manifest, Some("580.1".into())));
        Side::of(vec![RunSeries { facts, ..RunSeries::default() }])
    }

    #[test]
    fn what_differs_is_named() {
        let facts = compare(&side(&["H200", "H200"], 4, 0), &side(&["H200"], 8, 1));
        let named: Vec<_> = facts.iter().filter(|fact| fact.differs).map(|fact| fact.what.as_str()).collect();
        assert_eq!(named, ["hardware", "config run.seed", "config train.batch"]);
        let mattering: Vec<_> = facts.iter().filter(|fact| fact.matters).map(|fact| fact.what.as_str()).collect();
        assert_eq!(mattering, ["hardware", "config train.batch"]);
        assert_eq!(facts[0].a.as_deref(), Some("2 × H200"));
    }

    #[test]
    fn a_csv_alone_knows_nothing_and_nothing_differs() {
        let csv = Side::of(vec![RunSeries::default()]);
        let facts = compare(&side(&["H200"], 4, 0), &csv);
        assert!(facts.iter().all(|fact| fact.b.is_none() && !fact.differs), "{facts:?}");
    }
}
