//! The configurations that come with the repository.

use crate::support::{config, never_stuck, train, worst};
use dflash_trainer::config::Config;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

fn configs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect()
}

#[test]
fn all_can_be_read() {
    for path in ["", "sim", "incident", "bench"].into_iter().flat_map(configs) {
        let config = Config::load(&path).unwrap();
        assert_eq!(config.pipeline.is_simulated(), path.parent().unwrap().ends_with("sim"));
    }
}

fn table(path: &Path) -> Vec<(String, Value)> {
    let table: Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let flat = |(section, keys): (String, Value)| {
        let keys = keys.as_table().unwrap().clone();
        keys.into_iter().map(move |(key, value)| (format!("{section}.{key}"), value))
    };
    table.into_iter().flat_map(flat).filter(|(key, _)| key != "run.name").collect()
}

#[test]
fn an_incident_differs_from_the_fast_one_in_its_switch_alone() {
    let all = configs("incident");
    let fast = table(all.iter().find(|path| path.ends_with("fast.toml")).unwrap());
    let others: Vec<_> = all.iter().filter(|path| !path.ends_with("fast.toml")).collect();
    assert_eq!(others.len(), 8);
    for path in others {
        let own: Vec<_> = table(path).into_iter().filter(|entry| !fast.contains(entry)).map(|(key, _)| key).collect();
        let expected = if path.ends_with("queue_depth.toml") { 2 } else { 1 };
        assert_eq!(own.len(), expected, "{}: {own:?}", path.display());
    }
}

/// The same bits where a switch changes only when work is done; where sums have another order, what that rounds. Document ids
/// are made with the texts: of them `packing.rs` of the command's tests says it.
#[test]
fn an_incidents_switch_teaches_what_the_fast_one_teaches() {
    let all = configs("incident");
    let fast = table(all.iter().find(|path| path.ends_with("fast.toml")).unwrap());
    let taught = |entries: &[(String, Value)]| {
        let switched = |config: Config, (key, value): &(String, Value)| config.with(&format!("{key}={value}")).unwrap();
        let config = entries.iter().filter(|(key, _)| switches(key)).fold(config(), switched);
        never_stuck(move || train(&config, 2, 1))
    };
    let expected = taught(&fast);
    for path in all.iter().filter(|path| !path.ends_with("fast.toml")) {
        let own = table(path);
        assert!(own.iter().any(|entry| switches(&entry.0) && !fast.contains(entry)), "{}", path.display());
        let sums = ["anchors.toml", "mask.toml", "split_fc.toml"].iter().any(|name| path.ends_with(name));
        let (apart, allowed) = (worst(&expected, &taught(&own)), if sums { 2e-5 } else { 0.0 });
        assert!(apart <= allowed, "{}: {apart}", path.display());
    }
}

/// Whether a key is one of the incident's; the others are of the demo's size.
fn switches(key: &str) -> bool {
    key.starts_with("pipeline.") && !key.ends_with("_device")
        || ["data.document_ids", "drafter.mask", "drafter.split_fc", "train.fixed_anchors", "train.norm_reading"]
            .contains(&key)
}

#[test]
fn what_eight_gpus_are_measured_with_is_derived_and_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (gpus, flag, splits) in [(8, None, 4), (4, Some("--four"), 2)] {
        let dir = tempfile::tempdir().unwrap();
        let script = root.join("scripts/bench-eight");
        let derived = std::process::Command::new(script).args(flag).arg("--derive").arg(dir.path()).status().unwrap();
        assert!(derived.success());
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let configs: Vec<Config> = files.map(|path| Config::load(&path).unwrap()).collect();
        assert_eq!(configs.len(), splits * 2 * 3);
        for config in &configs {
            let p = &config.pipeline;
            let mut devices: Vec<String> =
                p.targets().iter().chain(&p.drafters()).map(|device| format!("{device:?}")).collect();
            devices.sort();
            devices.dedup();
            assert_eq!((devices.len(), p.batch_queue), (gpus, p.hs_queue), "each GPU has one worker");
        }
        let mut kinds: Vec<_> = configs
            .iter()
            .map(|c| (c.pipeline.targets().len(), format!("{:?}", c.pipeline.transport), c.pipeline.hs_queue))
            .collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), configs.len(), "each is another");
    }
}

/// A dflash that fails for one split and says the same of every other one.
const FAKE: &str = r#"#!/bin/sh
case "$1 $*" in
    train*5+3*) exit 4 ;;
    train*) echo run ;;
    report*) echo "run x · finished · 1.0 s · 14,377 tokens/s · tau N/A" ;;
esac
"#;

#[test]
fn measuring_eight_gpus_goes_on_after_a_failure_and_makes_nothing_twice() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let fake = dir.path().join("dflash");
    std::fs::write(&fake, FAKE).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/bench-eight");
    let out = dir.path().join("out");
    let rows = || {
        let run = std::process::Command::new(&script).arg("--binary").arg(&fake).arg(&out).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        std::fs::read_to_string(out.join("results.csv")).unwrap()
    };
    let first = rows();
    assert_eq!(first.lines().count(), 1 + 24);
    assert_eq!(first.lines().filter(|row| row.starts_with("5+3,") && row.ends_with(',')).count(), 6);
    assert_eq!(first.lines().filter(|row| row.ends_with(",14377")).count(), 18);
    let again = rows();
    let more = again.strip_prefix(&first).unwrap();
    assert!(more.lines().count() == 6 && more.lines().all(|row| row.starts_with("5+3,")), "only what failed: {more}");
}
