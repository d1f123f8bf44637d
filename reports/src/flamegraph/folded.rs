//! Folded stacks: a line a stack, its frames with `;` between, then its weight.

use super::Graph;
use super::stacks::Stacks;
use std::collections::BTreeMap;
use std::io::{self, Write};

impl Graph {
    /// Weights by folded stack, sorted by stack. Names are made so that nothing can misread them.
    #[must_use]
    pub fn folded(&self) -> BTreeMap<String, u64> {
        let (stacks, mut folded) = (self.plain(), BTreeMap::new());
        stacks.walk_paths(
            |_| true,
            |node, path| match stacks.nodes[node as usize].own {
                0 => {}
                own => drop(folded.insert(path.to_owned(), own)),
            },
        );
        folded
    }

    /// The folded stacks as lines, nanoseconds or samples, for other tools.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_folded(&self, out: &mut dyn Write) -> io::Result<()> {
        let (stacks, mut outcome) = (self.plain(), Ok(()));
        stacks.walk_paths(
            |_| true,
            |node, path| {
                let own = stacks.nodes[node as usize].own;
                if own > 0 && outcome.is_ok() {
                    outcome = writeln!(out, "{path} {own}");
                }
            },
        );
        outcome
    }

    /// The stacks with names that the folded format cannot misread.
    pub(super) fn plain(&self) -> Stacks {
        self.stacks.renamed(frame).0
    }
}

/// A name that the folded format cannot misread: `;` parts frames, and a number after a space would be a count. What XML
/// or a terminal would stumble over goes, too.
pub(super) fn frame(name: &str) -> String {
    let safe = |c: char| match c {
        ';' => ':',
        c if c.is_whitespace() => '_',
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        c => c,
    };
    let mut text: String = name.chars().map(safe).collect();
    if text.is_empty() {
        text.push('?');
    }
    if text.starts_with('#') {
        text.insert(0, '_');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn frames_cannot_be_misread() {
        assert_eq!(frame("layer 3"), "layer_3");
        assert_eq!(frame("a;b\u{1b}[0m\n"), "a:b\u{fffd}[0m_");
        assert_eq!(frame("drafter.layer[3]"), "drafter.layer[3]");
        assert_eq!(frame(""), "?");
        assert_eq!(frame("# x"), "_#_x");
        assert_eq!(frame("\u{ffff}"), "\u{fffd}");
    }
}
