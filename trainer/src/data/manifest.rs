//! `manifest.json`, the index of a prepared dataset:
//!
//! | field | content |
//! |---|---|
//! | `schema` | 1; a reader refuses a higher one |
//! | `key` | what the dataset was made from: `digest` and its `parts` |
//! | `settings` | free-form, for people: nothing reads it back |
//! | `samples`, `tokens`, `supervised_tokens` | totals over all shards |
//! | `shards` | one entry per file: `file`, `sha256`, `samples`, `tokens`, `supervised_tokens` |

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DataError, Key};

/// The file's name; its presence makes a directory a dataset.
pub(super) const FILE: &str = "manifest.json";
/// The version that this program writes.
pub(super) const SCHEMA: u32 = 1;

/// What a dataset is made from and what people should know about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Everything that decides the content.
    pub key: Key,
    /// Anything worth reading later: model, date, counts of the filter.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

/// One shard's line in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// File name inside the dataset's directory.
    pub file: String,
    /// Of the whole file, in hex.
    pub sha256: String,
    /// Samples in it.
    pub samples: u64,
    /// Tokens in it.
    pub tokens: u64,
    /// Tokens that the loss sees.
    pub supervised_tokens: u64,
}

/// The manifest as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub schema: u32,
    /// Key and settings.
    #[serde(flatten)]
    pub meta: Meta,
    /// Samples in all shards.
    pub samples: u64,
    /// Tokens in all shards.
    pub tokens: u64,
    /// Supervised tokens in all shards.
    pub supervised_tokens: u64,
    /// The shards, in order.
    pub shards: Vec<ShardEntry>,
}

impl Manifest {
    /// The manifest of `shards`, with their totals.
    pub(super) fn new(meta: Meta, shards: Vec<ShardEntry>) -> Self {
        let total = |count: fn(&ShardEntry) -> u64| shards.iter().map(count).sum();
        let (samples, tokens) = (total(|s| s.samples), total(|s| s.tokens));
        let supervised_tokens = total(|s| s.supervised_tokens);
        Self { schema: SCHEMA, meta, samples, tokens, supervised_tokens, shards }
    }

    /// Reads and checks the manifest of a dataset's directory.
    ///
    /// # Errors
    /// There is none, it cannot be understood, is newer than this program, or contradicts itself.
    pub fn read(dir: &Path) -> Result<Self, DataError> {
        let path = dir.join(FILE);
        let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
            ErrorKind::NotFound if dir.exists() => DataError::NotADataset { dir: dir.to_owned() },
            _ => DataError::io("read", &path)(e),
        })?;
        let value: Value =
            serde_json::from_str(&text).map_err(|e| DataError::shard(&path, "manifest", format!("not JSON ({e})")))?;
        check_schema(&value, &path)?;
        let manifest: Self =
            serde_json::from_value(value).map_err(|e| DataError::shard(&path, "manifest", e.to_string()))?;
        manifest.check(&path)?;
        Ok(manifest)
    }

    fn check(&self, path: &Path) -> Result<(), DataError> {
        let counted = Self::new(self.meta.clone(), self.shards.clone());
        let totals = [
            ("samples", self.samples, counted.samples),
            ("tokens", self.tokens, counted.tokens),
            ("supervised_tokens", self.supervised_tokens, counted.supervised_tokens),
        ];
        for (field, said, sum) in totals {
            if said != sum {
                return Err(DataError::shard(path, field, format!("{said}, but the shards add up to {sum}")));
            }
        }
        if !self.meta.key.is_consistent() {
            return Err(DataError::shard(path, "key", "the digest is not that of the parts"));
        }
        // A manifest is data: it must not lead the reader out of its own directory.
        match self.shards.iter().find(|s| Path::new(&s.file).file_name() != Some(s.file.as_ref())) {
            Some(shard) => Err(DataError::shard(path, "file", format!("{:?} is not a plain file name", shard.file))),
            None => Ok(()),
        }
    }
}

/// Looked at before the rest, because a later version may have other fields.
fn check_schema(value: &Value, path: &Path) -> Result<(), DataError> {
    match value.get("schema").and_then(Value::as_u64) {
        Some(version) if version == u64::from(SCHEMA) => Ok(()),
        Some(version) if version > u64::from(SCHEMA) => Err(DataError::shard(
            path,
            "schema",
            format!("version {version}, this dflash reads up to {SCHEMA}: update dflash"),
        )),
        _ => Err(DataError::shard(path, "schema", format!("must be {SCHEMA}"))),
    }
}
