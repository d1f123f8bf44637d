//! docs/config.md, made from the declarations, so that it cannot lag behind.

use super::Config;
use std::fmt::Write as _;

/// The text of docs/config.md.
#[must_use]
pub fn markdown() -> String {
    let defaults = toml::Table::try_from(Config::default()).unwrap_or_default();
    let mut text = String::from(
        "# Configuration\n\nA run is described by one TOML file. Keys that it does not name have the defaults below; an unknown key is an\n\
         error that names the nearest one. Paths are relative to the current directory. This file is made from the\n\
         declarations in trainer/src/config/ (`DFLASH_BLESS=1 cargo test -p dflash-trainer config` rewrites it).\n\n\
         Where trainers of DFlash differ, the default is the paper's; where the paper is silent, SpecForge's; `dflash`: this\n\
         program's own.\n",
    );
    for (section, keys) in Config::sections() {
        // `write!` to a String cannot fail.
        let _ = write!(
            text,
            "\n## [{section}]\n\n| key | default | source of the default | what it does |\n|---|---|---|---|\n"
        );
        for key in keys {
            let default = defaults[section].get(key.name).map_or_else(String::new, ToString::to_string);
            let _ = writeln!(text, "| `{}` | `{default}` | {} | {} |", key.name, key.source(), key.what());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    /// The choices in which trainers differ.
    #[test]
    fn defaults_name_where_they_come_from() {
        let source = |section: &str, name: &str| {
            let sections = super::Config::sections();
            let (_, keys) = sections.iter().find(|(known, _)| *known == section).unwrap();
            keys.iter().find(|key| key.name == name).unwrap().source()
        };
        for (section, name, want) in [
            ("drafter", "layers", "the paper"),
            ("train", "learning_rate", "the paper"),
            ("train", "anchor_rule", "SpecForge"),
            ("train", "reduction", "SpecForge"),
            ("drafter", "window_rule", "SpecForge"),
            ("train", "batch", "SpecForge"),
            ("run", "seed", "dflash"),
        ] {
            assert_eq!(source(section, name), want, "[{section}] {name}");
        }
    }

    #[test]
    fn docs_config_md_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/config.md");
        let made = super::markdown();
        if std::env::var_os("DFLASH_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), made, "run the test with DFLASH_BLESS=1");
    }
}
