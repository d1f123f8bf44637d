//! The manifest of kept hidden states, and how much room all of them take.

use super::{FeatureError, Rows};
use crate::data::Key;
use crate::disk;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The file's name.
pub(super) const FILE: &str = "manifest.json";
/// The layout that this version writes.
const SCHEMA: u32 = 1;

/// manifest.json. Fields that this version does not know are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout of the folder.
    pub schema: u32,
    /// Version of dflash that began it.
    pub version: String,
    /// What the states were made from.
    pub key: Key,
    /// Rows that there will be.
    pub rows: u64,
    /// Numbers a token.
    pub width: u64,
    /// Their kind.
    pub kind: String,
    /// Bytes of states.bin.
    pub bytes: u64,
    /// All rows are there.
    pub complete: bool,
    /// The last training that wrote into it has closed it.
    pub clean: bool,
}

impl Manifest {
    pub(super) fn of(rows: &Rows, complete: bool, clean: bool) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            key: rows.key.clone(),
            rows: rows.lengths.len() as u64,
            width: rows.width,
            kind: format!("{:?}", rows.kind),
            bytes: rows.bytes(),
            complete,
            clean,
        }
    }

    /// Reads a folder's; `None`: there is none.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, FeatureError> {
        let path = dir.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(FeatureError::io("read", &path))?,
        };
        let damaged = |e: serde_json::Error| FeatureError::damaged(dir, FILE, e.to_string());
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        let found = value["schema"].as_u64().and_then(|schema| u32::try_from(schema).ok()).unwrap_or(0);
        if found > SCHEMA {
            return Err(FeatureError::TooNew { path, found, known: SCHEMA });
        }
        serde_json::from_value(value).map(Some).map_err(damaged)
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), FeatureError> {
        let path = dir.join(FILE);
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        disk::replace(&path, &text).map_err(FeatureError::io("write", &path))
    }

    /// Whether it describes `rows`; if not, what is wrong.
    pub(super) fn problem(&self, rows: &Rows) -> Option<String> {
        let wanted = Self::of(rows, self.complete, self.clean);
        let same = (&self.key.digest, self.rows, self.width, &self.kind, self.bytes)
            == (&wanted.key.digest, wanted.rows, wanted.width, &wanted.kind, wanted.bytes);
        (!same).then(|| "it describes other states than its folder's name says".to_owned())
    }
}

/// Refuses states of `bytes` in `dir` if all below `root` would take more than `most`.
pub(super) fn refuse_more(root: &Path, dir: &Path, bytes: u64, most: Option<u64>) -> Result<(), FeatureError> {
    let Some(most) = most else { return Ok(()) };
    let folders = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let others: Vec<(String, u64)> = folders
        .filter(|folder| folder != dir)
        .filter_map(|folder| {
            Some((folder.file_name()?.to_string_lossy().into_owned(), Manifest::read(&folder).ok()??.bytes))
        })
        .collect();
    let there: u64 = others.iter().map(|(_, bytes)| bytes).sum();
    if bytes.saturating_add(there) <= most {
        return Ok(());
    }
    let names: Vec<String> = others.into_iter().map(|(name, _)| name).collect();
    let others = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let gb = |bytes: u64| bytes as f64 / 1e9;
    Err(FeatureError::TooLarge { needed: gb(bytes), there: gb(there), root: root.to_owned(), others, most: gb(most) })
}
