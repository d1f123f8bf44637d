//! Tables, as text for a terminal and as Markdown for docs/measurements.md.

use std::fmt::Write;

/// How a table is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Columns padded with spaces.
    Text,
    /// Markdown.
    Markdown,
}

impl Form {
    /// `--markdown` among the program's arguments, or not.
    #[must_use]
    pub fn asked() -> Self {
        if std::env::args().any(|argument| argument == "--markdown") { Self::Markdown } else { Self::Text }
    }
}

/// The table with its header; the first column is text, the others are numbers and stand to the right.
#[must_use]
pub fn table(form: Form, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let head: Vec<String> = header.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    line(&mut text, form, &head, &widths);
    if form == Form::Markdown {
        text.push_str(&format!("|---|{}\n", "---:|".repeat(header.len().saturating_sub(1))));
    }
    rows.iter().for_each(|row| line(&mut text, form, row, &widths));
    text
}

fn line(text: &mut String, form: Form, row: &[String], widths: &[usize]) {
    // Writing into a string cannot fail.
    let _ = match form {
        Form::Markdown => writeln!(text, "| {} |", row.join(" | ")),
        Form::Text => {
            let cells = row.iter().zip(widths).enumerate();
            let cell = |(column, (cell, &width)): (usize, (&String, &usize))| {
                if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            };
            writeln!(text, "{}", cells.map(cell).collect::<Vec<_>>().join("  ").trim_end())
        }
    };
}

/// Nanoseconds as a table shows them: two digits behind the point where there is only one before it.
#[must_use]
pub fn ns(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::{Form, table};

    #[test]
    fn both_forms() {
        let rows = [vec!["dflash".to_owned(), "21.3".to_owned()], vec!["a".to_owned(), "1".to_owned()]];
        assert_eq!(table(Form::Text, &["", "ns"], &rows), "          ns\ndflash  21.3\na          1\n");
        let markdown = "|  | ns |\n|---|---:|\n| dflash | 21.3 |\n| a | 1 |\n";
        assert_eq!(table(Form::Markdown, &["", "ns"], &rows), markdown);
    }
}
