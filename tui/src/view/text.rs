//! Foreign text on the screen: escaped, measured, cut.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `text` with everything escaped that would move the cursor, reorder a line or take no room: a name can never
/// become a terminal command, nor hide.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_unsafe(letter) { cleaned.extend(letter.escape_default()) } else { cleaned.push(letter) }
    }
    cleaned
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control() || letter.width().unwrap_or(0) == 0
}

/// Columns that `text` takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// `text`, [`clean`], in at most `columns` columns; what was cut off shows as `…`.
#[must_use]
pub fn fit(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text;
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut fitted = String::new();
    let mut used = 0;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > room {
            break;
        }
        fitted.push(letter);
    }
    fitted.push('…');
    fitted
}

/// `text` cut and padded to exactly `columns` columns, flush left.
#[must_use]
pub fn left(text: &str, columns: usize) -> String {
    let mut fitted = fit(text, columns);
    fitted.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&fitted))));
    fitted
}

/// `text` cut and padded to exactly `columns` columns, flush right.
#[must_use]
pub fn right(text: &str, columns: usize) -> String {
    let fitted = fit(text, columns);
    let padding = columns.saturating_sub(width(&fitted));
    " ".repeat(padding) + &fitted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_sequences_and_invisible_letters_are_escaped() {
        assert_eq!(clean("a\x1b[2Jb\n\u{202e}c\u{200b}"), "a\\u{1b}[2Jb\\n\\u{202e}c\\u{200b}");
        assert_eq!(clean("目标:0"), "目标:0");
    }

    #[test]
    fn wide_letters_are_never_halved() {
        assert_eq!(fit("目标目标", 4), "目…");
        assert_eq!(left("目标目标", 4), "目… ");
        assert_eq!(fit("abc", 0), "");
    }

    proptest! {
        #[test]
        fn padded_text_has_the_width_asked_for(text in ".*", columns in 0usize..40) {
            prop_assert_eq!(width(&left(&text, columns)), columns);
            prop_assert_eq!(width(&right(&text, columns)), columns);
        }
    }
}
