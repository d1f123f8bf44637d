//! Reading the file, and saying what is wrong with it.

use super::Config;
use std::path::{Path, PathBuf};

/// What can be wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}; give a TOML file such as configs/demo.toml", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML, or a value has the wrong type.
    #[error("{path}:{line}: {message}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that no section has.
    #[error("{path}:{line}: there is no key `{key}`{hint}", path = path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The key as written.
        key: String,
        /// "; did you mean …", or where the keys are listed.
        hint: String,
    },
    /// What the command line would change.
    #[error("--set {assignment}: {problem}")]
    Set {
        /// As written.
        assignment: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A value that cannot work.
    #[error("{path}: [{section}] {key}: {problem}", path = path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Section.
        section: &'static str,
        /// Key.
        key: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
}

impl Config {
    /// Reads a configuration file. Keys that it does not name have their defaults.
    ///
    /// # Errors
    /// See [`ConfigError`]; each names the file, and the line or the key.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        Self::parse(&text, path)
    }

    /// Reads a configuration from text; `path` is for messages.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| explain(&error, text, path))?;
        config.recheck(path)?;
        Ok(config)
    }

    /// Checks the values again, after something changed them; `path` is for messages.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key.
    pub fn recheck(&self, path: &Path) -> Result<(), ConfigError> {
        super::check::check(self, path)
    }
}

fn explain(error: &toml::de::Error, text: &str, path: &Path) -> ConfigError {
    let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let message = error.message().to_owned();
    match unknown_field(&message) {
        Some(key) => ConfigError::UnknownKey { path: path.into(), line, hint: near(&key), key },
        None => ConfigError::Syntax { path: path.into(), line, message },
    }
}

/// serde's words for a key that a struct lacks: "unknown field `x`, expected …".
fn unknown_field(message: &str) -> Option<String> {
    Some(message.strip_prefix("unknown field `")?.split('`').next()?.to_owned())
}

/// The nearest key of any section: people also forget which section a key belongs to.
pub(super) fn near(key: &str) -> String {
    let sections = Config::sections();
    let named = sections.iter().map(|(name, _)| (format!("[{name}]"), strsim::damerau_levenshtein(key, name)));
    let keys = sections.iter().flat_map(|(section, keys)| {
        keys.iter().map(move |k| (format!("`{}` in [{section}]", k.name), strsim::damerau_levenshtein(key, k.name)))
    });
    match named.chain(keys).min_by_key(|(_, distance)| *distance) {
        Some((name, distance)) if distance <= 1 + key.len() / 3 => format!("; did you mean {name}?"),
        _ => "; docs/config.md lists the keys".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, Path::new("x.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_names_line_and_nearest() {
        assert_eq!(
            error("[train]\nlerning_rate = 1.0\n"),
            "x.toml:2: there is no key `lerning_rate`; did you mean `learning_rate` in [train]?"
        );
        assert_eq!(error("[trian]\n"), "x.toml:1: there is no key `trian`; did you mean [train]?");
    }

    #[test]
    fn a_key_in_the_wrong_section_is_found() {
        assert_eq!(
            error("[model]\nblock_size = 8\n"),
            "x.toml:2: there is no key `block_size`; did you mean `block_size` in [drafter]?"
        );
    }

    #[test]
    fn a_key_like_none_points_to_the_list() {
        assert_eq!(
            error("[run]\nzzzzzzzz = 1\n"),
            "x.toml:2: there is no key `zzzzzzzz`; docs/config.md lists the keys"
        );
    }

    #[test]
    fn a_wrong_type_names_its_line() {
        assert!(error("[train]\nsteps = 5\nbatch = \"four\"\n").starts_with("x.toml:3: invalid type: string"));
        assert!(error("[pipeline]\ntarget_device = \"gpu\"\n").contains("`gpu` is no device"));
    }
}
