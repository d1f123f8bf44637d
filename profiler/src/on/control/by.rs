//! Who asks, as marks say it.

/// Letters of a name that are kept.
const LONGEST: usize = 32;

/// A name that a stranger gave, as part of a sentence.
pub(super) fn by(name: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().filter(plain).take(LONGEST).collect();
    if name.is_empty() { "by a client".to_owned() } else { format!("by {name}") }
}

#[cfg(test)]
mod tests {
    use super::by;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(by("ctl"), "by ctl");
        assert_eq!(by("\u{1b}[31m"), "by 31m");
        assert_eq!(by(""), "by a client");
        assert_eq!(by(&"x".repeat(10_000)).len(), 35);
    }
}
