//! Text for people: numbers with units, names made harmless, columns aligned.

/// How a text may look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Colour by ANSI escapes.
    pub color: bool,
}

impl Look {
    /// Wraps a text in an ANSI style, if colours are on.
    #[must_use]
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
        };
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The few styles in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// Bad news.
    Red,
    /// Good news.
    Green,
    /// Warnings.
    Yellow,
}

/// How an unknown value is written: N/A is not 0.
pub const UNKNOWN: &str = "N/A";

/// Nanoseconds as milliseconds.
#[must_use]
pub fn milliseconds(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

/// A share as percent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A whole number in groups of three.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration as a person would say it: `12.3 s`, `3 min 12 s`, `2 h 5 min`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.1} s", ns as f64 / 1e9),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A name that came out of a file, without what could drive a terminal or turn the text around it.
#[must_use]
pub fn harmless(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

/// Characters that no one sees, but that change how others are shown: widths of nothing, changes of direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A bar of `width` cells for a share, in eighths of a cell.
#[must_use]
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Rows of cells, written in aligned columns: the first to the left, the others to the right unless they are said to be
/// texts.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    rows: Vec<(Vec<String>, Option<Style>)>,
    texts: Vec<usize>,
}

impl Grid {
    /// Appends a row.
    pub fn row<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, cells: I, style: Option<Style>) {
        self.rows.push((cells.into_iter().map(Into::into).collect(), style));
    }

    /// Aligns these columns (the first is 0) to the left, too.
    pub fn texts(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.texts.extend(columns);
    }

    /// Writes the rows, each after `indent`. A column of bars (the last, if `bars`) is aligned to the left.
    #[must_use]
    pub fn text(&self, indent: &str, bars: bool, look: Look) -> String {
        let columns = self.rows.iter().map(|(cells, _)| cells.len()).max().unwrap_or(0);
        let width = |i: usize| self.rows.iter().filter_map(|(c, _)| Some(c.get(i)?.chars().count())).max();
        let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
        let mut text = String::new();
        for (cells, style) in &self.rows {
            let cell = |(i, cell): (usize, &String)| {
                let pad = " ".repeat(widths[i] - cell.chars().count());
                let left = i == 0 || bars && i + 1 == columns || self.texts.contains(&i);
                if left { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
            };
            let line = cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            text.push_str(indent);
            text.push_str(&style.map_or_else(|| line.to_owned(), |style| look.paint(style, line)));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, duration, grouped, harmless};

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(duration(12_340_000_000), "12.3 s");
        assert_eq!(duration(192_000_000_000), "3 min 12 s");
        assert_eq!(duration(7_500_000_000_000), "2 h 5 min");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn names_cannot_drive_a_terminal() {
        assert_eq!(harmless("a\u{1b}[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(harmless("a\u{9b}31m\u{202e}b"), "a\u{fffd}31m\u{fffd}b");
    }
}
