//! `dflash --help`: the commands by what one wants to do.
//!
//! clap lists commands in one row; this makes its list anew, from the same definitions.

use clap::Command;
use std::fmt::Write as _;

/// What one may want to do, and the commands for it. What stands nowhere is listed at the end.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Train a drafter", &["prepare", "train", "eval", "export", "doctor"]),
    ("Look at a run, while it goes on or afterwards", &["runs", "top", "report", "flamegraph", "trace", "dump"]),
    ("Compare runs", &["diff", "explain", "whatif"]),
    ("Ask things of a run that goes on", &["ctl"]),
    ("Set up the shell", &["completions", "help"]),
];

/// Columns that every terminal has.
const WIDTH: usize = 80;

/// The command with its list in groups.
pub fn grouped(command: Command) -> Command {
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{options}}", list(&command));
    command.help_template(template)
}

fn list(command: &Command) -> String {
    let header = command.get_styles().get_header().to_owned();
    let literal = command.get_styles().get_literal().to_owned();
    let commands = all(command);
    let indent = commands.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 4;
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> = commands.iter().map(|(name, _)| name.as_str()).filter(|name| !listed(name)).collect();
    let groups = GROUPS.iter().copied().chain([("Other commands", others.as_slice())]);
    let mut text = String::new();
    for (title, names) in groups {
        let mut rows = names.iter().filter_map(|name| commands.iter().find(|(known, _)| known == name)).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for (name, about) in rows {
            let pad = " ".repeat(indent - 2 - name.len());
            let _ = writeln!(text, "  {literal}{name}{literal:#}{pad}{}", wrapped(about, indent));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{header}Options:{header:#}");
    text
}

/// Names and texts of the commands, and of the one that clap adds.
fn all(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let about = |sub: &Command| sub.get_about().map(ToString::to_string).unwrap_or_default();
    let mut commands: Vec<_> = shown.map(|sub| (sub.get_name().to_owned(), about(sub))).collect();
    if !commands.iter().any(|(name, _)| name == "help") {
        commands.push(("help".into(), "Print this message or the help of the given subcommand(s)".into()));
    }
    commands
}

/// A text in lines that fit, each but the first behind the indent.
fn wrapped(text: &str, indent: usize) -> String {
    let (mut out, mut length) = (String::new(), indent);
    for word in text.split_whitespace() {
        let count = word.chars().count();
        if length > indent && length + 1 + count > WIDTH {
            let _ = write!(out, "\n{}", " ".repeat(indent));
            length = indent;
        } else if length > indent {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += count;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, WIDTH, all, list};
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_stands_in_one_group() {
        for (name, _) in all(&Cli::command()) {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name.as_str())).count();
            assert_eq!(groups, 1, "put `{name}` into a group of src/help.rs");
        }
    }

    #[test]
    fn lines_fit_every_terminal() {
        let text = list(&Cli::command().styles(clap::builder::Styles::plain()));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(!text.contains("Other commands"));
    }
}
