//! The configurations that come with the repository.

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
    for path in ["", "sim", "incident"].into_iter().flat_map(configs) {
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
