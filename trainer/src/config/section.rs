//! One macro that turns a list of documented keys into a struct, its defaults, and the table that docs/config.md prints.

/// A key of the configuration, as documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name within the section.
    pub name: &'static str,
    /// What it does, its unit; behind `Source:` where its default comes from.
    pub doc: &'static str,
}

impl Key {
    /// What it does, in one line.
    #[must_use]
    pub fn what(&self) -> String {
        let what = self.doc.split_once(SOURCE).map_or(self.doc, |(what, _)| what);
        what.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Where its default comes from; this program, where its documentation names nobody else.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.doc.split_once(SOURCE).map_or("dflash", |(_, source)| source.trim().trim_end_matches('.'))
    }
}

const SOURCE: &str = "Source: ";

/// Declares a section: a struct with `Deserialize` (unknown keys refused), `Default`, and `KEYS`.
macro_rules! section {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $key_doc:literal])* $key:ident: $type:ty = $default:expr,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[doc = $key_doc])* pub $key: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $name {
            /// Every key with its documentation, in the order of the file.
            pub const KEYS: &[$crate::config::Key] = &[
                $($crate::config::Key { name: stringify!($key), doc: concat!($($key_doc, "\n"),*) },)*
            ];
        }
    };
}
pub(crate) use section;
