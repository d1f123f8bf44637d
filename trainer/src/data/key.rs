//! What a prepared dataset was made from, as one hash and as the parts of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::DataError;

/// The longest text that a key shows as it is; longer ones are shown by their hash.
const SHOWN: usize = 80;

/// Builds a [`Key`] from everything that decides a dataset's content.
///
/// The order of the calls does not matter; a name given twice keeps the later value.
#[derive(Debug, Clone, Default)]
pub struct ContentKey {
    parts: BTreeMap<String, String>,
}

/// The identity of a dataset: equal keys, equal content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// SHA-256 over all parts, in hex.
    pub digest: String,
    /// The parts by name: short texts as they are, everything else as `sha256:<hex>`.
    pub parts: BTreeMap<String, String>,
}

impl ContentKey {
    /// A key without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text: a setting's value, a template.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        // A text that looks like a hash is hashed too, so that it never equals a file with that hash.
        let plain = value.len() <= SHOWN && !value.contains('\n') && !value.starts_with("sha256:");
        if plain { self.part(name, value.to_owned()) } else { self.digest(name, &sha256(value.as_bytes())) }
    }

    /// A file's content. Its name, place and time do not count.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn file(self, name: &str, path: &Path) -> Result<Self, DataError> {
        let digest = sha256_file(path)?;
        Ok(self.digest(name, &digest))
    }

    /// Something whose SHA-256 (in hex) is known already.
    #[must_use]
    pub fn digest(self, name: &str, hex: &str) -> Self {
        self.part(name, format!("sha256:{hex}"))
    }

    /// The finished key.
    pub fn finish(self) -> Key {
        Key { digest: digest_of(&self.parts), parts: self.parts }
    }

    fn part(mut self, name: &str, value: String) -> Self {
        self.parts.insert(name.to_owned(), value);
        self
    }
}

impl Key {
    /// Whether the digest is that of the parts; false after someone edited either.
    pub(super) fn is_consistent(&self) -> bool {
        self.digest == digest_of(&self.parts)
    }

    /// The parts in which a stored key (`self`) differs from a wanted one, in words.
    pub(super) fn differences(&self, wanted: &Self) -> String {
        let names = self.parts.keys().chain(wanted.parts.keys().filter(|name| !self.parts.contains_key(*name)));
        let differing = names.filter(|name| self.parts.get(*name) != wanted.parts.get(*name));
        let shown = |value: Option<&String>| value.map_or("none".to_owned(), |v| short(v));
        let sentences = differing.map(|name| {
            format!("{name}: {} there, {} now", shown(self.parts.get(name)), shown(wanted.parts.get(name)))
        });
        sentences.collect::<Vec<_>>().join("; ")
    }
}

/// Twelve digits of a hash tell two apart; texts stand in quotes.
fn short(value: &str) -> String {
    match value.strip_prefix("sha256:") {
        Some(hex) => format!("sha256 {}…", hex.get(..12).unwrap_or(hex)),
        None => format!("{value:?}"),
    }
}

/// Each name and value goes in with its length, so that no two sets of parts run together into the same bytes.
fn digest_of(parts: &BTreeMap<String, String>) -> String {
    let mut hasher = Sha256::new();
    for text in parts.iter().flat_map(|(name, value)| [name, value]) {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hex(&hasher.finalize())
}

/// SHA-256 of bytes, in hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn sha256_file(path: &Path) -> Result<String, DataError> {
    let mut file = File::open(path).map_err(DataError::io("open", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(DataError::io("read", path))? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_names_do() {
        let ab = ContentKey::new().text("a", "1").text("b", "2").finish();
        assert_eq!(ab, ContentKey::new().text("b", "2").text("a", "1").finish());
        assert!(ab.is_consistent());
        assert_ne!(ab, ContentKey::new().text("a", "2").text("b", "1").finish());
        assert_ne!(
            ContentKey::new().text("a", "1b2").finish().digest,
            ContentKey::new().text("a1", "b2").finish().digest
        );
    }

    #[test]
    fn a_file_counts_by_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["x", "y"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, "abc").unwrap());
        let key = |path| ContentKey::new().file("data", path).unwrap().finish();
        assert_eq!(key(&paths[0]), key(&paths[1]));
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(key(&paths[0]), ContentKey::new().digest("data", known).finish());
        assert_ne!(key(&paths[0]), ContentKey::new().text("data", &format!("sha256:{known}")).finish());
        let missing = ContentKey::new().file("data", &dir.path().join("z")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot open"), "{missing}");
    }

    #[test]
    fn differences_name_the_parts_and_both_values() {
        let there = ContentKey::new().text("temperature", "0").text("template", &"x".repeat(100)).text("same", "1");
        let now = ContentKey::new().text("temperature", "0.7").text("same", "1").text("new", "2");
        let sentence = there.finish().differences(&now.finish());
        assert!(sentence.contains(r#"temperature: "0" there, "0.7" now"#), "{sentence}");
        assert!(sentence.contains("template: sha256 ") && sentence.contains("… there, none now"), "{sentence}");
        assert!(sentence.contains(r#"new: none there, "2" now"#) && !sentence.contains("same"), "{sentence}");
    }
}
