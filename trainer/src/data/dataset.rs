//! A prepared dataset: a directory of shards and a manifest, written whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::key::sha256;
use super::manifest::{FILE, Manifest, Meta, ShardEntry};
use super::{DataError, Key, Sample, shard};

/// Whether `dir` holds the dataset with this key already.
///
/// A directory that is missing or empty holds nothing. Only the manifest is read; [`PreloadedDataset::open`] checks
/// the shards.
///
/// # Errors
/// `dir` holds a dataset made from other input (the message names what differs), or something that is no dataset.
pub fn cached(dir: &Path, key: &Key) -> Result<bool, DataError> {
    if is_free(dir)? {
        return Ok(false);
    }
    let stored = Manifest::read(dir)?.meta.key;
    if stored.digest == key.digest {
        return Ok(true);
    }
    Err(DataError::OtherDataset { dir: dir.to_owned(), differences: stored.differences(key) })
}

/// Writes `samples` as shards of at most `max_tokens_per_shard` tokens each (a longer sample gets a shard of its own).
///
/// Everything is written into a directory beside `dir` and renamed at the end: an interrupted run leaves no dataset.
///
/// # Errors
/// `dir` exists and is not empty, a sample is malformed, or the file system refuses.
pub fn write_shards(
    dir: &Path,
    samples: &[Sample],
    meta: &Meta,
    max_tokens_per_shard: usize,
) -> Result<Manifest, DataError> {
    if cached(dir, &meta.key)? {
        return Err(DataError::DatasetExists { dir: dir.to_owned() });
    }
    let (part, manifest) = write_beside(dir, samples, meta, max_tokens_per_shard)?;
    // A directory can be renamed onto an empty one, so nothing that appeared meanwhile is overwritten.
    part.rename_to(dir)?;
    Ok(manifest)
}

/// As [`write_shards`], but puts the new dataset in the place of one that is there, whatever its key.
///
/// # Errors
/// `dir` holds something that is not a dataset of ours (never deleted), or as for [`write_shards`].
pub fn replace_shards(
    dir: &Path,
    samples: &[Sample],
    meta: &Meta,
    max_tokens_per_shard: usize,
) -> Result<Manifest, DataError> {
    if is_free(dir)? {
        return write_shards(dir, samples, meta, max_tokens_per_shard);
    }
    if !dir.join(FILE).is_file() {
        return Err(DataError::NotADataset { dir: dir.to_owned() });
    }
    let (part, manifest) = write_beside(dir, samples, meta, max_tokens_per_shard)?;
    let old = beside(dir, "old")?;
    fs::rename(dir, &old).map_err(DataError::io("move away", dir))?;
    if let Err(error) = part.rename_to(dir) {
        // Better the old dataset than none.
        fs::rename(&old, dir).map_err(DataError::io("move back", &old))?;
        return Err(error);
    }
    fs::remove_dir_all(&old).map_err(DataError::io("remove", &old))?;
    Ok(manifest)
}

/// All samples of a dataset, in memory.
#[derive(Debug)]
pub struct PreloadedDataset {
    manifest: Manifest,
    samples: Vec<Sample>,
}

impl PreloadedDataset {
    /// Loads a dataset and checks each shard against the manifest: checksum, structure, counts.
    ///
    /// # Errors
    /// There is no dataset, or a file is not as the manifest says; the message names the file and the field.
    pub fn open(dir: &Path) -> Result<Self, DataError> {
        let manifest = Manifest::read(dir)?;
        let mut samples = Vec::new();
        for entry in &manifest.shards {
            samples.extend(open_shard(&dir.join(&entry.file), entry)?);
        }
        Ok(Self { manifest, samples })
    }

    /// The samples, in the order they were written.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// What the dataset says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

fn open_shard(path: &Path, entry: &ShardEntry) -> Result<Vec<Sample>, DataError> {
    let bytes = fs::read(path).map_err(DataError::io("read", path))?;
    let found = sha256(&bytes);
    if found != entry.sha256 {
        return Err(DataError::shard(path, "sha256", format!("{found}, the manifest says {}", entry.sha256)));
    }
    let samples = shard::decode(&bytes, path)?;
    let counted = entry_of(&entry.file, &entry.sha256, &samples);
    let counts = [
        ("samples", entry.samples, counted.samples),
        ("tokens", entry.tokens, counted.tokens),
        ("supervised_tokens", entry.supervised_tokens, counted.supervised_tokens),
    ];
    match counts.into_iter().find(|(_, said, found)| said != found) {
        Some((field, said, found)) => {
            Err(DataError::shard(path, field, format!("holds {found}, the manifest says {said}")))
        }
        None => Ok(samples),
    }
}

fn entry_of(file: &str, sha256: &str, samples: &[Sample]) -> ShardEntry {
    ShardEntry {
        file: file.to_owned(),
        sha256: sha256.to_owned(),
        samples: samples.len() as u64,
        tokens: samples.iter().map(|s| s.ids.len() as u64).sum(),
        supervised_tokens: samples.iter().map(|s| s.supervised() as u64).sum(),
    }
}

/// Missing, or an empty directory.
fn is_free(dir: &Path) -> Result<bool, DataError> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(DataError::io("list", dir)(e)),
    }
}

/// A hidden path next to `dir`, on the same file system so that a rename is one step.
fn beside(dir: &Path, what: &str) -> Result<PathBuf, DataError> {
    let name = dir.file_name().ok_or_else(|| DataError::NotADataset { dir: dir.to_owned() })?.to_string_lossy();
    let path = dir.with_file_name(format!(".{name}.{what}-{}", std::process::id()));
    if path.exists() {
        fs::remove_dir_all(&path).map_err(DataError::io("remove", &path))?;
    }
    Ok(path)
}

/// A directory that is being written; removed again unless it gets its real name.
struct Part {
    path: PathBuf,
    kept: bool,
}

impl Part {
    fn rename_to(mut self, dir: &Path) -> Result<(), DataError> {
        fs::rename(&self.path, dir).map_err(DataError::io("rename to", dir))?;
        self.kept = true;
        sync(self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.kept {
            // The error that brought us here is the one to report.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn write_beside(dir: &Path, samples: &[Sample], meta: &Meta, limit: usize) -> Result<(Part, Manifest), DataError> {
    let part = Part { path: beside(dir, "part")?, kept: false };
    fs::create_dir_all(&part.path).map_err(DataError::io("create", &part.path))?;
    let mut entries = Vec::new();
    for (index, group) in shards_of(samples, limit).into_iter().enumerate() {
        let file = format!("shard-{index:05}.safetensors");
        let bytes = shard::encode(group)?;
        write_synced(&part.path.join(&file), &bytes)?;
        entries.push(entry_of(&file, &sha256(&bytes), group));
    }
    let manifest = Manifest::new(meta.clone(), entries);
    let path = part.path.join(FILE);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| DataError::io("write", &path)(e.into()))?;
    write_synced(&path, &text)?;
    sync(&part.path)?;
    Ok((part, manifest))
}

/// `samples` in groups of at most `limit` tokens, in order.
fn shards_of(samples: &[Sample], limit: usize) -> Vec<&[Sample]> {
    let mut groups = Vec::new();
    let (mut begin, mut tokens) = (0, 0);
    for (i, sample) in samples.iter().enumerate() {
        if i > begin && tokens + sample.ids.len() > limit {
            groups.push(&samples[begin..i]);
            (begin, tokens) = (i, 0);
        }
        tokens += sample.ids.len();
    }
    if begin < samples.len() {
        groups.push(&samples[begin..]);
    }
    groups
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    let mut file = File::create(path).map_err(DataError::io("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(DataError::io("write", path))
}

/// Makes a directory's entries durable.
fn sync(dir: &Path) -> Result<(), DataError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(DataError::io("sync", dir))
}

#[cfg(test)]
#[path = "dataset_tests.rs"]
mod tests;
