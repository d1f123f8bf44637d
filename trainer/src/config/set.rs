//! One key changed from the command line.

use super::load::near;
use super::{Config, ConfigError};

impl Config {
    /// With one key changed, as `SECTION.KEY=VALUE` says; VALUE is TOML, or a text without its quotes. The values are to be
    /// checked afterwards, by [`Config::recheck`].
    ///
    /// # Errors
    /// [`ConfigError::Set`]: there is no such key, or the value is of another type.
    pub fn with(&self, assignment: &str) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError::Set { assignment: assignment.to_owned(), problem };
        let form = || wrong("write SECTION.KEY=VALUE".to_owned());
        let (name, value) = assignment.split_once('=').ok_or_else(form)?;
        let (section, key) = name.trim().split_once('.').ok_or_else(form)?;
        let known = Self::sections().iter().any(|(name, keys)| *name == section && keys.iter().any(|k| k.name == key));
        if !known {
            return Err(wrong(format!("there is no key `{section}.{key}`{}", near(key))));
        }
        let mut all = toml::Table::try_from(self).map_err(|e| wrong(e.to_string()))?;
        if let Some(toml::Value::Table(keys)) = all.get_mut(section) {
            keys.insert(key.to_owned(), parsed(value.trim()));
        }
        all.try_into().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))
    }
}

/// A TOML value; what is none is a text.
fn parsed(value: &str) -> toml::Value {
    let table = format!("value = {value}").parse::<toml::Table>();
    table.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::*;

    #[test]
    fn a_key_is_changed_and_the_others_are_not() {
        let config = Config::default().with("train.learning_rate=1e-4").unwrap();
        let mut want = Config::default();
        want.train.learning_rate = 1e-4;
        assert_eq!(config, want);
        let config = config.with("train.schedule=constant").unwrap().with("drafter.target_layer_ids = [1, 2]").unwrap();
        assert_eq!((config.train.schedule, config.drafter.target_layer_ids), (Schedule::Constant, vec![1, 2]));
    }

    #[test]
    fn what_cannot_be_says_why() {
        let error = |assignment: &str| Config::default().with(assignment).unwrap_err().to_string();
        assert_eq!(
            error("train.lerning_rate=1"),
            "--set train.lerning_rate=1: there is no key `train.lerning_rate`; did you mean `learning_rate` in [train]?"
        );
        assert!(error("steps=3").ends_with("write SECTION.KEY=VALUE"));
        assert!(error("train.steps=many").contains("invalid type: string"), "{}", error("train.steps=many"));
    }
}
