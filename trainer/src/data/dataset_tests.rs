//! Round trips, caching, and one test per kind of damage.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::ContentKey;
use super::*;

fn sample(id: &str, tokens: u32) -> Sample {
    Sample { id: id.into(), ids: (0..tokens).collect(), loss_mask: (0..tokens).map(|i| i % 3 != 0).collect() }
}

fn samples() -> Vec<Sample> {
    vec![sample("a", 5), sample("b:é", 9), sample("", 0), sample("c", 3)]
}

fn meta(prompts: &str) -> Meta {
    let settings = Map::from_iter([("model".to_owned(), json!("demo"))]);
    Meta { key: ContentKey::new().text("prompts", prompts).text("tokenizer", "t").finish(), settings }
}

/// A dataset of three shards in a fresh place.
fn written() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("data");
    write_shards(&dir, &samples(), &meta("1"), 9).unwrap();
    (place, dir)
}

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Opens after `change` to the manifest.
fn open_with(change: impl FnOnce(&mut Value)) -> String {
    let (_place, dir) = written();
    let path = dir.join(FILE);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
    PreloadedDataset::open(&dir).unwrap_err().to_string()
}

/// Opens after the first shard was replaced by `tensors`, with a checksum that fits.
fn open_with_shard(bytes: &[u8]) -> String {
    let (_place, dir) = written();
    fs::write(dir.join("shard-00000.safetensors"), bytes).unwrap();
    let path = dir.join(FILE);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["shards"][0]["sha256"] = json!(sha256(bytes));
    fs::write(&path, manifest.to_string()).unwrap();
    PreloadedDataset::open(&dir).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    let (place, dir) = written();
    let dataset = PreloadedDataset::open(&dir).unwrap();
    assert_eq!(dataset.samples(), samples());
    let manifest = dataset.manifest();
    assert_eq!((manifest.samples, manifest.tokens, manifest.supervised_tokens), (4, 17, 11));
    assert_eq!(manifest.meta, meta("1"));
    assert_eq!(manifest.shards.iter().map(|s| s.tokens).collect::<Vec<_>>(), [5, 9, 3]);
    assert_eq!(names(place.path()), BTreeSet::from(["data".to_owned()]), "nothing is left beside");
}

#[test]
fn no_samples_make_a_dataset_without_shards() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("data");
    fs::create_dir(&dir).unwrap();
    write_shards(&dir, &[], &meta("1"), 9).unwrap();
    assert!(PreloadedDataset::open(&dir).unwrap().samples().is_empty());
}

#[test]
fn same_key_is_a_cache_hit_and_another_names_what_differs() {
    let (place, dir) = written();
    assert!(cached(&dir, &meta("1").key).unwrap());
    assert!(!cached(&place.path().join("none"), &meta("1").key).unwrap());
    let message = cached(&dir, &meta("2").key).unwrap_err().to_string();
    assert!(message.contains(r#"(prompts: "1" there, "2" now)"#), "{message}");
}

#[test]
fn existing_dataset_is_not_overwritten() {
    let (_place, dir) = written();
    assert!(matches!(write_shards(&dir, &[], &meta("1"), 9), Err(DataError::DatasetExists { .. })));
    assert!(matches!(write_shards(&dir, &[], &meta("2"), 9), Err(DataError::OtherDataset { .. })));
    assert_eq!(PreloadedDataset::open(&dir).unwrap().samples().len(), 4);
}

#[test]
fn replacing_is_asked_for_by_name() {
    let (place, dir) = written();
    replace_shards(&dir, &samples()[..1], &meta("2"), 9).unwrap();
    let dataset = PreloadedDataset::open(&dir).unwrap();
    assert_eq!((dataset.samples().len(), &dataset.manifest().meta), (1, &meta("2")));
    assert_eq!(names(place.path()).len(), 1, "nothing is left beside");
    assert_eq!(names(&dir).len(), 2, "no shard of the old dataset is left");
}

#[test]
fn directory_that_is_no_dataset_is_never_touched() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
    for result in [
        cached(place.path(), &meta("1").key).map(|_| ()),
        write_shards(place.path(), &[], &meta("1"), 9).map(|_| ()),
        replace_shards(place.path(), &[], &meta("1"), 9).map(|_| ()),
        PreloadedDataset::open(place.path()).map(|_| ()),
    ] {
        assert!(matches!(result, Err(DataError::NotADataset { .. })), "{result:?}");
    }
    assert_eq!(fs::read(place.path().join("thesis.tex")).unwrap(), b"years of work");
}

#[test]
fn file_in_the_directorys_place_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("data");
    fs::write(&file, "x").unwrap();
    let message = write_shards(&file, &[], &meta("1"), 9).unwrap_err().to_string();
    assert!(message.starts_with("cannot list"), "{message}");
}

#[test]
fn malformed_sample_is_named_and_nothing_is_left() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("data");
    let mut bad = sample("odd one", 4);
    bad.loss_mask.pop();
    let message = write_shards(&dir, &[bad], &meta("1"), 9).unwrap_err().to_string();
    assert!(message.contains(r#"sample "odd one": 4 ids but 3 mask entries"#), "{message}");
    let big = Sample { id: "big".into(), ids: vec![1 << 31], loss_mask: vec![true] };
    let message = write_shards(&dir, &[big], &meta("1"), 9).unwrap_err().to_string();
    assert!(message.contains("token id 2147483648 does not fit"), "{message}");
    assert!(names(place.path()).is_empty());
}

#[test]
fn missing_dataset_is_refused() {
    let message = PreloadedDataset::open(Path::new("no/such")).unwrap_err().to_string();
    assert!(message.starts_with("cannot read no/such/manifest.json"), "{message}");
}

#[test]
fn truncated_shard_is_refused() {
    let (_place, dir) = written();
    let path = dir.join("shard-00001.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let message = PreloadedDataset::open(&dir).unwrap_err().to_string();
    assert!(message.contains("shard-00001.safetensors: `sha256`: "), "{message}");
}

#[test]
fn missing_shard_is_refused() {
    let (_place, dir) = written();
    fs::remove_file(dir.join("shard-00002.safetensors")).unwrap();
    let message = PreloadedDataset::open(&dir).unwrap_err().to_string();
    assert!(message.contains("shard-00002.safetensors"), "{message}");
}

#[test]
fn shard_that_is_no_safetensors_file_is_refused() {
    let message = open_with_shard(b"hello");
    assert!(message.contains("shard-00000.safetensors: `header`: not a safetensors file"), "{message}");
}

#[test]
fn shard_with_other_samples_is_refused() {
    let message = open_with_shard(&shard::encode(&samples()).unwrap());
    assert!(message.contains("`samples`: holds 4, the manifest says 1"), "{message}");
}

#[test]
fn half_written_manifest_is_refused() {
    let (_place, dir) = written();
    fs::write(dir.join(FILE), r#"{"schema": 1, "sam"#).unwrap();
    let message = PreloadedDataset::open(&dir).unwrap_err().to_string();
    assert!(message.contains("manifest.json: `manifest`: not JSON"), "{message}");
}

#[test]
fn newer_manifest_says_update() {
    let message = open_with(|manifest| *manifest = json!({"schema": 2}));
    assert!(message.contains("`schema`: version 2, this dflash reads up to 1: update dflash"), "{message}");
    assert!(open_with(|manifest| manifest["schema"] = json!("x")).contains("`schema`: must be 1"));
}

#[test]
fn manifest_with_a_missing_or_wrong_field_is_refused() {
    let lacking = open_with(|manifest| drop(manifest.as_object_mut().unwrap().remove("shards")));
    assert!(lacking.contains("missing field `shards`"), "{lacking}");
    let totals = open_with(|manifest| manifest["tokens"] = json!(18));
    assert!(totals.contains("`tokens`: 18, but the shards add up to 17"), "{totals}");
    let key = open_with(|manifest| manifest["key"]["parts"]["prompts"] = json!("2"));
    assert!(key.contains("`key`: the digest is not that of the parts"), "{key}");
    let outside = open_with(|manifest| manifest["shards"][0]["file"] = json!("../x"));
    assert!(outside.contains(r#"`file`: "../x" is not a plain file name"#), "{outside}");
}

fn any_sample() -> impl Strategy<Value = Sample> {
    (".{0,12}", prop::collection::vec((0..=i32::MAX as u32, any::<bool>()), 0..40)).prop_map(|(id, tokens)| {
        let (ids, loss_mask) = tokens.into_iter().unzip();
        Sample { id, ids, loss_mask }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn any_samples_come_back(samples in prop::collection::vec(any_sample(), 0..12), limit in 1usize..120) {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("data");
        let manifest = write_shards(&dir, &samples, &meta("1"), limit).unwrap();
        prop_assert!(manifest.shards.iter().all(|s| s.tokens <= limit as u64 || s.samples == 1));
        let dataset = PreloadedDataset::open(&dir).unwrap();
        prop_assert_eq!(dataset.samples(), samples);
    }

    #[test]
    fn damaged_shards_never_panic(at in 0usize..700, byte in any::<u8>(), cut in 0usize..700) {
        let mut bytes = shard::encode(&samples()).unwrap();
        let length = bytes.len();
        bytes[at % length] = byte;
        let _ = shard::decode(&bytes, Path::new("x"));
        let _ = shard::decode(&bytes[..cut % length], Path::new("x"));
    }
}
